"""LightLLM 1.2: a list of experts for each layer, of which every rank gets a copy. It takes no placement.

Each rank keeps one block of experts, in order, and the listed ones after it; a token whose expert is listed
stays on its rank. So of a plan with replicas LightLLM can be told which experts are hot, and no more.
Its reader of the list was run from its sources on a CPU, and the rest was read; it was never served.
"""

from collections.abc import Iterator

import numpy as np

from planner.engines.common import count_table, script, small, usual
from planner.engines.common.command import Endpoint
from planner.engines.common.interface import Emission
from planner.engines.common.layout import cyclic_placement, refuse_broken, uneven_nodes
from planner.engines.common.releases import Release
from planner.engines.common.verdict import DECODE, MIXED, Finding, Verdict
from planner.engines.lightllm.hot_experts import list_text, listed_experts, served
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Violation

__all__ = ["listed_experts", "served"]  # of a module of their own

NAME = "lightllm"
TITLE = "LightLLM"
VERSION = "1.2.0"
REPLICA_RULE = "nearest"  # a listed expert: the rank's own copy; any other has one slot
ACCELERATOR = "nvidia"
DRAFT_IS_OPTIONAL = True
ROLES = small.ROLES
TABLE_NAME = "redundancy_experts.json"
PORT = 28765
FEWEST = 2  # it asserts against one listed expert, with which its all-to-all hangs
BUFFER = "NUM_MAX_DISPATCH_TOKENS_PER_RANK_DECODE"  # a multiple of 8
# model_type of the classes whose experts take a list, with --enable_ep_moe
LISTS = frozenset(
    ("deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "mixtral", "qwen3_moe", "qwen3_next")
)
RELEASES = (Release(VERSION, "sources at 87881ae, read; its reader run on a CPU", LISTS),)
ENDPOINT = Endpoint()
_SOURCES = "sources at 87881ae"
_BLOCKS = "it would serve one block of experts a GPU, not the plan's"
transport = usual.deepep_transport
replica_rule = usual.one_rule(REPLICA_RULE)
read_map = usual.no_map


def dispatch_dtype(model: ModelSpec) -> str:
    del model
    return "fp8"  # its DeepEP buffers are asked for fp8 dispatch


def reads_map(model: ModelSpec) -> bool:
    """Whether the model's experts take a list."""
    return model.architecture in LISTS


def default_placement(model: ModelSpec, gpus: int, redundant: int) -> Placement:
    """Without a list LightLLM has no redundant experts; the cyclic map stands in for a question with some."""
    return cyclic_placement(model, gpus, redundant)


def map_limits(model: ModelSpec, slots: int, gpus: int) -> list[Violation]:
    del slots
    if model.experts % gpus == 0:
        return []
    text = f"LightLLM gives each rank as many experts, and {model.experts} do not divide over {gpus}"
    return [Violation("experts", text)]


def judge(problem: Problem, version: str | None = None, role: str = MIXED) -> Verdict:
    release, _ = small.asked(TITLE, RELEASES, problem, version, role)
    return small.verdict(TITLE, version or release.version, problem, _findings(problem))


def emit(
    placement: Placement, problem: Problem, model_path: str, version: str | None = None, role: str = MIXED
) -> Emission:
    """The list of hot experts and the launch script."""
    release, notes = small.asked(TITLE, RELEASES, problem, version, role)
    verdict, files = judge(problem, version, role), {}
    refuse_broken(placement, problem, verdict.violations)
    ignored = _no_list(problem) or _no_blocks(placement, problem)
    if ignored:
        notes += (f"WARNING: {ignored}; the launch has no redundant experts",)
    elif problem.redundant:
        files[TABLE_NAME] = list_text(problem)
        notes += (_distance(placement, problem),)
    notes += small.said(verdict, ("role", *small.DEEPEP))
    nodes = range(problem.topology.node_count)
    commands = [_command(problem, model_path, node, with_list=TABLE_NAME in files) for node in nodes]
    title = f"{TITLE} {version or release.version}"
    return small.emission(title, problem, commands, files, notes, ignored, endpoint=ENDPOINT)


def _no_list(problem: Problem) -> str:
    """Why there is no list for so many redundant experts; empty where there is, or none is due."""
    model, count = problem.model, problem.redundant // problem.gpus
    if not reads_map(model):
        return f"LightLLM {VERSION} is not known to copy experts of {model.architecture}: {_BLOCKS}"
    if not 0 < count < FEWEST:
        return ""
    few = f"takes no list of {count} expert, for which this plan has slots, but from {FEWEST} on"
    return f"LightLLM {VERSION} {few}: {_BLOCKS}"


def _no_blocks(placement: Placement, problem: Problem) -> str:
    """Why a plan without replicas is not what it serves: only blocks of experts in order are."""
    moe_LP = placement.expert_LP[: len(problem.model.moe_layer_ids)]
    if problem.redundant or (moe_LP == np.arange(problem.model.experts)).all():
        return ""
    return f"LightLLM {VERSION} does not place experts: {_BLOCKS}"


def _distance(placement: Placement, problem: Problem) -> str:
    count = problem.redundant // problem.gpus
    how = count_table.longer(placement, served(placement, problem), problem, REPLICA_RULE)
    what = f"blocks of experts and, on every rank, a copy of the {count} hot experts listed for the layer"
    return (
        f"WARNING: LightLLM does not place experts: it serves {what}, not the plan's placement. "
        f"A step is predicted to take {how} than the plan's"
    )


def _findings(problem: Problem) -> Iterator[Finding]:
    uneven = uneven_nodes(problem.topology, "LightLLM starts as many ranks on each node")
    yield from small.refused(uneven, f"{_SOURCES}, --tp over --nnodes, read")
    limits_of_map = map_limits(problem.model, problem.slots, problem.gpus)
    yield from small.refused(limits_of_map, f"{_SOURCES}, fused_moe_weight.py, run")
    yield from small.deepep_only(TITLE, problem, problem.workload.phase, pads_hidden=False)
    text = "LightLLM listens on 127.0.0.1 unless told, where no other host reaches it"
    yield Finding("host", text, f"{_SOURCES}, server/api_cli.py:34, read", ENDPOINT.listen)
    text = "requests, graphs and chunks are told by rank, and the buffer holds the requests that decode"
    source = f"{_SOURCES}, utils/envs_utils.py:85, server/router/req_queue, server/api_start.py:243; read"
    yield Finding("sizes", text, source, (*_settings(problem), *_size_words(problem)))
    if _no_list(problem):
        yield Finding("map", _no_list(problem), f"{_SOURCES}, its classes, read", ("--flags-only",))
    else:
        text = (
            "LightLLM places no experts: blocks of them in order, and a copy of the listed ones on every rank"
        )
        flags = ("--ep_redundancy_expert_config_path", TABLE_NAME) if problem.redundant else ()
        yield Finding("map", text, f"{_SOURCES}, fused_moe_weight.py, run", flags)
    yield small.other_phase(problem, "in steps of LightLLM's own size")


def _buffer(problem: Problem) -> int:
    return -(-problem.workload.tokens_per_rank // 8) * 8


def _settings(problem: Problem) -> list[str]:
    return [f"{BUFFER}={_buffer(problem)}"] if problem.workload.phase == DECODE else []


def _size_words(problem: Problem) -> list[str]:
    tokens = str(problem.workload.tokens_per_rank)
    if problem.workload.phase == DECODE:
        return ["--running_max_req_size", tokens, "--graph_max_batch_size", tokens]
    return ["--batch_max_tokens", tokens, "--chunked_prefill_size", tokens]


def _command(problem: Problem, model_path: str, node: int, *, with_list: bool) -> list[str]:
    """One node's command, as bash words."""
    gpus, nodes, settings = str(problem.gpus), problem.topology.node_count, _settings(problem)
    words = ["env", *settings] if settings else []
    words += ["python3", "-m", "lightllm.server.api_server", "--model_dir", script.quote(model_path)]
    words += [*ENDPOINT.listen, "--tp", gpus, "--dp", gpus, "--enable_ep_moe", *_size_words(problem)]
    if nodes > 1:
        words += ["--nnodes", str(nodes), "--node_rank", str(node)]
        words += ["--nccl_host", '"$HEAD_ADDRESS"', "--nccl_port", str(PORT)]
    if not with_list:
        return words
    return [*words, "--ep_redundancy_expert_config_path", f"{script.PLAN_DIR}/{TABLE_NAME}"]
