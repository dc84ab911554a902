"""What a launch is made of, and the words that start SGLang on one node."""

import math
from dataclasses import dataclass
from functools import cached_property

from planner.engines.common import script
from planner.engines.common.releases import Release
from planner.engines.common.sizes import AUTO, GATHER, LOW_LATENCY, NORMAL, Sizes, sizes_of
from planner.engines.common.verdict import DECODE, MIXED, PREFILL
from planner.engines.sglang.backend import Backend, backend_of
from planner.engines.sglang.expert_location import MAP_NAME
from planner.engines.sglang.memory import Room, room
from planner.engines.sglang.models import LINEAR_ATTENTION, page_tokens
from planner.problem import Problem

ATTN_DP = "--attn-dp-size"
BUFFER = "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK"
BOOTSTRAP_PORT = 8998  # SGLang's own, of the prefill server's head
PREFILL_BATCH = 16384  # tokens a rank that SGLang takes into a prefill batch unless told otherwise
# Read and run: words that differ for the prefill half, so that both halves resolve to one page size.
PAGED_STATES = ("--mamba-radix-cache-strategy", "extra_buffer")
# Prefill graphs of some sizes that are no multiple of 8 can hang DeepEP's capture, says SGLang itself.
NO_PREFILL_GRAPH = "--disable-prefill-cuda-graph"
HOST = ("--host", "0.0.0.0")  # noqa: S104 - another host's router and users must reach it


@dataclass(frozen=True)
class Launch:
    """A question, a release and a role, and all that follows from them."""

    problem: Problem
    release: Release
    role: str = MIXED

    @property
    def reads_map(self) -> bool:
        return self.release.reads_map(self.problem.model)

    @cached_property
    def backend(self) -> Backend:
        return self._backend(self.problem.workload.phase)

    @cached_property
    def mode(self) -> str:
        """DeepEP's mode, or none: that of the planned phase, and of both where one server has both."""
        phase = self.problem.workload.phase
        if not self.backend.deep:
            return GATHER
        other = PREFILL if phase == DECODE else DECODE
        if self.role == MIXED and self._backend(other).deep:
            return AUTO
        return LOW_LATENCY if phase == DECODE else NORMAL

    @cached_property
    def sizes(self) -> Sizes:
        workload, page = self.problem.workload, page_tokens(self.problem.model)
        tokens, gpus = workload.tokens_per_rank, self.problem.gpus
        return sizes_of(workload.phase, tokens, self.role, self.mode, gpus=gpus, page=page)

    @property
    def shared(self) -> int:
        """GPUs that share a request's attention; SGLang counts requests and tokens for all of them."""
        return self.problem.workload.attention_tp

    @property
    def attention_groups(self) -> int:
        return self.problem.gpus // self.shared

    @cached_property
    def room(self) -> Room:
        return room(self.problem, self.sizes, self.mode)

    def _backend(self, phase: str) -> Backend:
        return backend_of(phase, self.problem.topology, self.problem.model)


def node_words(launch: Launch, model_path: str, node: int) -> list[str]:
    """One node's command, as bash words."""
    problem = launch.problem
    gpus, nodes = str(problem.gpus), problem.topology.node_count
    words = ["python3", "-m", "sglang.launch_server", "--model-path", script.quote(model_path), *HOST]
    words += ["--tp-size", gpus]
    if nodes > 1:
        words += ["--nnodes", str(nodes), "--node-rank", str(node)]
        words += ["--dist-init-addr", '"$HEAD_ADDRESS:20000"']
    if not launch.reads_map:
        return [*words, "--ep-size", str(expert_ranks(problem)), *role_words(launch)]
    words += ["--ep-size", gpus, *attention_words(launch), *all_to_all_words(launch)]
    words += [*launch.backend.runner, *size_words(launch), *memory_words(launch), *role_words(launch)]
    words.append("--disable-shared-experts-fusion")  # a fused shared expert is a slot that no map has
    return [*_environment(launch), *words]


def attention_words(launch: Launch) -> list[str]:
    """How many groups have requests of their own; with one group attention is SGLang's tensor parallelism."""
    groups, dense = str(launch.attention_groups), ["--moe-dense-tp-size", "1"]
    if launch.attention_groups == 1:
        return dense
    attn_dp = ATTN_DP in launch.release.flags
    return [*([ATTN_DP, groups] if attn_dp else ["--dp-size", groups, "--enable-dp-attention"]), *dense]


def expert_ranks(problem: Problem) -> int:
    """The EP size of a launch without a map: the most ranks that whole experts divide over."""
    return math.gcd(problem.model.experts, problem.gpus)


def all_to_all_words(launch: Launch) -> list[str]:
    """How tokens are moved and replicas chosen, and the map they are chosen from."""
    mode, deep = launch.mode, launch.backend.deep
    backend = ["deepep", "--deepep-mode", mode] if deep else ["none"]
    replicas = ["--ep-num-redundant-experts", str(launch.problem.redundant)]
    location = ["--init-expert-location", f"{script.PLAN_DIR}/{MAP_NAME}"]
    dispatch = ["--ep-dispatch-algorithm", "static" if deep else "dynamic"]
    return ["--moe-a2a-backend", *backend, *replicas, *location, *dispatch]


def size_words(launch: Launch) -> list[str]:
    """Requests and chunks are told as totals over the ranks, graphs as sizes of one attention group."""
    sizes, gpus, words = launch.sizes, launch.problem.gpus, []
    if sizes.running:
        words += ["--max-running-requests", str(sizes.running * gpus)]
        words += ["--cuda-graph-max-bs-decode", str(sizes.running * launch.shared)]
    if sizes.chunk:
        words += ["--chunked-prefill-size", str(sizes.chunk * gpus)]
    if sizes.chunk * launch.shared > PREFILL_BATCH:
        words += ["--max-prefill-tokens", str(sizes.chunk * launch.shared)]
    return [*words, NO_PREFILL_GRAPH] if sizes.buffer and sizes.chunk else words


def memory_words(launch: Launch) -> list[str]:
    return ["--mem-fraction-static", f"{launch.room.fraction:.3f}"]


def role_words(launch: Launch) -> list[str]:
    """Half of a pair: its role, and the page size that its other half must have too."""
    if launch.role == MIXED:
        return []
    model, words = launch.problem.model, ["--disaggregation-mode", launch.role]
    if launch.role == PREFILL:
        words += ["--disaggregation-bootstrap-port", str(BOOTSTRAP_PORT)]
    if not launch.reads_map:
        return words
    states = PAGED_STATES if launch.role == PREFILL and model.architecture in LINEAR_ATTENTION else ()
    return [*words, "--page-size", str(page_tokens(model)), *states]


def _environment(launch: Launch) -> list[str]:
    return ["env", f"{BUFFER}={launch.sizes.buffer}"] if launch.sizes.buffer else []
