"""RTP-LLM 0.2.0: a map from each slot to its expert, read at start. Later sources misread one in silence.

Its reader of the map was run from its sources on a CPU, and the rest was read; it was never served.
"""

from collections.abc import Iterator

import numpy as np

from planner.engines.common import deepep, script, small, usual
from planner.engines.common.command import Endpoint
from planner.engines.common.interface import Emission
from planner.engines.common.layout import (
    cyclic_placement,
    gpus_per_node,
    refuse_broken,
    rows_by_layer,
    same_rows,
    uneven_nodes,
)
from planner.engines.common.releases import Release
from planner.engines.common.verdict import DECODE, MIXED, Finding, Verdict
from planner.engines.rtp_llm.phy2log import MAP_NAME, held_layers, map_text, read_map
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Violation, check_slots
from planner.topology import Topology

__all__ = ["MAP_NAME", "held_layers", "map_text", "read_map"]  # of a module of their own

NAME = "rtp_llm"
TITLE = "RTP-LLM"
VERSION = "0.2.0"
# Replica (i + rank) % n of the i-th entry of all tokens' top k: even over a batch, apart from one entry.
REPLICA_RULE = "even"
ACCELERATOR = "nvidia"
DRAFT_IS_OPTIONAL = True
ROLES = small.ROLES
MODEL_TYPES = {  # its own name for the classes with routed experts, by model_type of the model's config
    "deepseek_v2": "deepseek2",
    "deepseek_v3": "deepseek3",
    "kimi_k2": "kimi_k2",
    "mixtral": "mixtral",
    "glm4_moe": "glm4_moe",
    "qwen2_moe": "qwen_2_moe",
    "qwen3_moe": "qwen_3_moe",
    "qwen3_vl_moe": "qwen3_vl_moe",
}
_LOST = (
    "later sources (4b8d39c, 2026-08) have no flag for a map, and their router sends tokens to the slot of "
    "the expert's own number whatever the map says"
)
RELEASES = (
    Release(VERSION, "sources of its tag, read; its reader run on a CPU", frozenset(MODEL_TYPES)),
    Release("0.2.1", "sources at 4b8d39c, read", refused=_LOST),
)
ENDPOINT = Endpoint((), "--start_port", 8088)  # of rank 0; it binds all interfaces and has no flag for one
_TAG = "sources of the tag v0.2.0"
replica_rule = usual.one_rule(REPLICA_RULE)
dispatch_dtype = usual.block_fp8


def transport(phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
    """Normal mode with every batch: low latency would take prompts too, which its buffer does not hold."""
    del phase, model
    return deepep.transport("prefill", topology)


def reads_map(model: ModelSpec) -> bool:
    return RELEASES[0].reads_map(model)


def default_placement(model: ModelSpec, gpus: int, redundant: int) -> Placement:
    """Where replicas divide over the ranks each copies the first experts of the rank after it, within a node.

    One node is assumed. Past one replica an expert RTP-LLM has no map, and the cyclic one stands in.
    """
    check_slots(model, gpus, redundant)
    if redundant % gpus or not 0 < redundant <= model.experts or gpus == 1:
        return cyclic_placement(model, gpus, redundant)
    own_GS = np.arange(model.experts).reshape(gpus, -1)
    copied_GS = np.roll(own_GS, -1, axis=0)[:, : redundant // gpus]
    return same_rows(model, gpus, np.concatenate([own_GS, copied_GS], axis=1).ravel())


def map_limits(model: ModelSpec, slots: int, gpus: int) -> list[Violation]:
    if slots > 2 * model.experts:
        most = f"RTP-LLM takes up to {model.experts} redundant experts, one for each expert"
        return [Violation("redundant", f"{most}; not {slots - model.experts}")]
    return [Violation("gpus", "RTP-LLM moves tokens for an EP size of more than 1")] if gpus < 2 else []


def judge(problem: Problem, version: str | None = None, role: str = MIXED) -> Verdict:
    release, _ = small.asked(TITLE, RELEASES, problem, version, role)
    return small.verdict(TITLE, version or release.version, problem, _findings(problem))


def emit(
    placement: Placement, problem: Problem, model_path: str, version: str | None = None, role: str = MIXED
) -> Emission:
    """Map and launch script."""
    release, notes = small.asked(TITLE, RELEASES, problem, version, role)
    verdict, files = judge(problem, version, role), {}
    refuse_broken(placement, problem, verdict.violations)
    ignored = _ignored(problem.model)
    if ignored:
        notes += (f"WARNING: {ignored}; the launch holds neither map nor redundant experts",)
    else:
        files[MAP_NAME] = map_text(rows_by_layer(placement), problem.model, problem.gpus)
        notes += (f"WARNING: for the release {VERSION} only: {_LOST}",)
    notes += small.said(verdict, ("draft", "role", *small.DEEPEP))
    commands = [_command(problem, model_path, node) for node in range(problem.topology.node_count)]
    title = f"{TITLE} {version or release.version}"
    return small.emission(title, problem, commands, files, notes, ignored, endpoint=ENDPOINT)


def _ignored(model: ModelSpec) -> str:
    if reads_map(model):
        return ""
    return f"RTP-LLM {VERSION} is not known to have a class with a map for {model.architecture}"


def _findings(problem: Problem) -> Iterator[Finding]:
    uneven = uneven_nodes(problem.topology, "RTP-LLM starts as many ranks on each node")
    yield from small.refused(uneven, f"{_TAG}, --local_world_size, read")
    limits_of_map = map_limits(problem.model, problem.slots, problem.gpus)
    yield from small.refused(limits_of_map, f"{_TAG}, model_loader/load_config.py, read")
    yield from small.deepep_only(TITLE, problem, "prefill", pads_hidden=False)
    text = (
        "tokens go through DeepEP's normal mode: low latency, the default, takes prompts too, and its buffer"
    )
    source = f"{_TAG}, CudaFfnLayer.cc:40, CudaDeepEPFfnLayer.cc:20, fused_moe_factory.py; read"
    text += " holds no more tokens than requests that run"
    yield Finding("all-to-all", text, source, tuple(_deepep_words(problem)))
    text = "RTP-LLM listens on all interfaces, rank 0 at 8088, and has no flag for the address"
    yield Finding("host", text, f"{_TAG}, frontend/frontend_app.py:86, read")
    ignored = _ignored(problem.model)
    if ignored:
        yield Finding("map", ignored, f"{_TAG}, its classes, read", ("--flags-only",))
    else:
        text = "with mode NONE and no replicas a permuted map would be misread in silence; statistics keep it"
        source = f"{_TAG}, model_loader/load_config.py, run; loader.py, run"
        yield Finding("map", text, source, ("--phy2log_path", MAP_NAME, "--eplb_mode", "STATS"))
    if _size_words(problem):
        text = "requests are told by rank; all of them together are that times the ranks"
        source = f"{_TAG}, gpt_init_model_parameters.py:1026, concurrency_controller.py:57; read"
        yield Finding("sizes", text, source, tuple(_size_words(problem)))
    if problem.model.draft_layer_ids and not ignored:
        text = "leave MTP off: its draft model reads the same file and stops at the number of rows"
        yield Finding("draft", text, f"{_TAG}, read")
    yield small.other_phase(problem, "in sizes of RTP-LLM's own")


def _deepep_words(problem: Problem) -> list[str]:
    internode = str(int(problem.topology.node_count > 1))
    return ["--use_deepep_moe", "1", "--use_deepep_low_latency", "0", "--use_deepep_internode", internode]


def _size_words(problem: Problem) -> list[str]:
    workload = problem.workload
    return ["--concurrency_limit", str(workload.tokens_per_rank)] if workload.phase == DECODE else []


def _command(problem: Problem, model_path: str, node: int) -> list[str]:
    """One node's command, as bash words.

    Statistics alone make it keep the table from experts to slots where there are no replicas, and move
    nothing.
    """
    gpus, counts = str(problem.gpus), gpus_per_node(problem.topology)
    words = ["env", f"WORLD_INDEX={node}", 'LEADER_ADDRESS="$HEAD_ADDRESS"'] if len(counts) > 1 else []
    words += ["python3", "-m", "rtp_llm.start_server", "--checkpoint_path", script.quote(model_path)]
    model_type = MODEL_TYPES.get(problem.model.architecture)
    words += ["--model_type", model_type] if model_type else []
    words += ["--tp_size", "1", "--dp_size", gpus, "--ep_size", gpus, "--world_size", gpus]
    words += ["--world_rank", str(sum(counts[:node])), "--local_world_size", str(counts[node])]
    words += [*_deepep_words(problem), *_size_words(problem)]
    if _ignored(problem.model):
        return words
    words += ["--redundant_expert", str(problem.redundant), "--eplb_mode", "STATS"]
    return [*words, "--phy2log_path", f"{script.PLAN_DIR}/{MAP_NAME}"]
