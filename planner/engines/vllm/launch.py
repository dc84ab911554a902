"""What a launch is made of, and the words that start vLLM on one node."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from planner.cost import low_latency_bytes, low_latency_width
from planner.engines.common import script, vllm_plugin, vllm_replay
from planner.engines.common.releases import Release
from planner.engines.common.verdict import DECODE, MIXED, PREFILL
from planner.engines.common.vllm_serve import serve_words
from planner.engines.vllm.backend import LOW_LATENCY, Backend, backend_of
from planner.problem import Problem

# Forward steps between two of vLLM's own rearrangements; the first comes after a quarter of it.
STEP_INTERVAL = 3000
HOST = ("--host", "0.0.0.0")  # noqa: S104 - another host's router and users must reach it
MOST_BUFFER_BYTES = 16 * (2**31 - 1)  # DeepEP counts 16 bytes at a time in an int, and stays below its end
NO_NVLINK_BUFFER = ("VLLM_DEEPEP_BUFFER_SIZE_MB", "0")  # low latency mode takes it and does not use it
ACROSS_TRAYS = ("VLLM_DEEPEP_LOW_LATENCY_USE_MNNVL", "1")
SIDE_CHANNEL = "VLLM_NIXL_SIDE_CHANNEL_HOST"
KV_ROLES = {PREFILL: "kv_producer", DECODE: "kv_consumer"}


@dataclass(frozen=True)
class Launch:
    """A question, a release and a role, and all that follows from them."""

    problem: Problem
    release: Release
    role: str = MIXED
    plugin: bool = False
    replay: bool = False

    @cached_property
    def backend(self) -> Backend:
        problem = self.problem
        return backend_of(problem.workload.phase, problem.topology, problem.model)

    @property
    def tokens(self) -> int:
        """Tokens that a step brings to a data-parallel rank at most; the low-latency buffer holds as many."""
        return self.problem.workload.tokens_per_rank * self.problem.workload.attention_tp

    @property
    def requests(self) -> int:
        """Requests that decode at once, a token each; 0 leaves it to vLLM: up to 1024, and to `tokens`."""
        return self.tokens if self.problem.workload.phase == DECODE else 0

    @property
    def buffer_bytes(self) -> int:
        """What vLLM asks of DeepEP for low latency mode; 0 in every other."""
        if self.backend.name != LOW_LATENCY:
            return 0
        width = low_latency_width(self.problem.model.dispatch_width)
        return low_latency_bytes(self.tokens, width, self.problem.slots)

    @property
    def over_trays(self) -> bool:
        """Whether NVLink reaches over hosts."""
        topology = self.problem.topology
        return topology.domain_count < topology.node_count

    @property
    def environment(self) -> list[str]:
        """NAME=value, as bash words."""
        found = []
        if self.backend.name == LOW_LATENCY:
            found += [ACROSS_TRAYS] if self.over_trays else []
            found.append(NO_NVLINK_BUFFER)
        if self.role != MIXED:
            found.append((SIDE_CHANNEL, f"\"${{{SIDE_CHANNEL}:-$(hostname -I | cut -d' ' -f1)}}\""))
        if self.plugin:
            found.append((vllm_plugin.MAP_VARIABLE, f"{script.PLAN_DIR}/{vllm_plugin.MAP_PATH}"))
        if self.replay:
            found.append(vllm_replay.STRATEGY)
        return [f"{name}={value}" for name, value in found]


def node_words(launch: Launch, model_path: str, node: int) -> list[str]:
    """One node's command, as bash words."""
    words = [*serve_words(launch.problem, model_path, node), *(() if node else HOST)]
    words += ["--enable-expert-parallel", "--all2all-backend", launch.backend.name]
    words += [*size_words(launch), *balancer_words(launch), *role_words(launch)]
    environment = launch.environment
    return ["env", *environment, *words] if environment else words


def size_words(launch: Launch) -> list[str]:
    """Of one rank: vLLM's limits are those of a data-parallel rank."""
    requests = ["--max-num-seqs", str(launch.requests)] if launch.requests else []
    return ["--max-num-batched-tokens", str(launch.tokens), *requests]


def balancer_words(launch: Launch) -> list[str]:
    if not launch.backend.eplb:
        return []
    balancer = {
        "num_redundant_experts": launch.problem.redundant,
        "step_interval": STEP_INTERVAL,
        "use_async": False,
    }
    return [*launch.backend.kernels, "--enable-eplb", "--eplb-config", _json(balancer)]


def role_words(launch: Launch) -> list[str]:
    """Half of a pair: who computes the KV cache, and who reads it."""
    if launch.role == MIXED:
        return []
    transfer = {
        "kv_connector": "NixlConnector",
        "kv_role": KV_ROLES[launch.role],
        "kv_load_failure_policy": "fail",
    }
    return ["--kv-transfer-config", _json(transfer)]


def _json(value: Mapping[str, object]) -> str:
    return script.quote(json.dumps(value, separators=(",", ":")))
