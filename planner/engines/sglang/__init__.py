"""SGLang 0.5.23. It reads a map file, for the models that offer their layout.

The rules were read in its wheel; tests/engines holds map, flags and replica choice against the engine itself,
on a CPU.
"""

from planner.base import BadInput
from planner.engines.common import deepep, script
from planner.engines.common.command import node_command
from planner.engines.common.interface import Emission
from planner.engines.common.layout import (
    cyclic_placement,
    draft_rows_lost,
    refuse_broken,
    rows_by_layer,
    uneven_nodes,
)
from planner.engines.common.releases import Release, find_release
from planner.engines.common.verdict import MIXED, Verdict, check_role, of_limits
from planner.engines.sglang.expert_location import MAP_NAME, held_layers, map_text, read_map
from planner.engines.sglang.launch import ATTN_DP, node_words
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Violation
from planner.topology import Topology

__all__ = ["MAP_NAME", "held_layers", "map_text", "read_map"]  # of the map's own module

NAME = "sglang"
TITLE = "SGLang"
VERSION = "0.5.23"
ACCELERATOR = "nvidia"
DRAFT_IS_OPTIONAL = True
ROLES = (MIXED,)
REPLICA_RULE = "nearest-static"
# Without an all-to-all: dynamic dispatch, the same choice on every rank. Earlier releases get it wrong.
GATHERED_RULE = "row-index"
MOST_DISPATCH_TOKENS = 1024  # the most that SGLang asserts of its dispatch buffer

# Offer their layout, but build or assert no redundant slots.
WITHOUT_REDUNDANCY = frozenset({"bailing_moe", "llada2_moe", "longcat_flash"})
READS_MAP = WITHOUT_REDUNDANCY.union(  # model_type of the classes with get_model_config_for_expert_location
    ("deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_v4", "kimi_k2", "kimi_k25"),
    ("glm4_moe", "glm4_moe_lite", "glm_moe_dsa"),
    ("qwen2_moe", "qwen3_moe", "qwen3_next", "qwen3_5_moe", "qwen3_5_moe_text"),
    ("qwen3_vl_moe", "qwen3_vl_moe_text"),
    ("minimax_m2", "minimax_m3", "minimax_m3_vl", "step3p5", "step3p7"),
    ("exaone_moe", "gpt_oss", "mimo_v2_flash", "nemotron_h"),
)
BARE_DRAFT = frozenset({"deepseek_v4"})  # draft layers without redundant slots
_OLDER = "its wheel, read: the same map and rules, without --attn-dp-size"
RELEASES = (
    Release("0.5.21", f"{_OLDER}; its list of models is taken from 0.5.23", READS_MAP),
    Release("0.5.23", "its wheel, read and run", READS_MAP, frozenset({ATTN_DP, GATHERED_RULE})),
)


def transport(phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
    return deepep.transport(phase, topology) if model is None or reads_map(model) else "allgather"


def replica_rule(phase: str, topology: Topology) -> str:
    return REPLICA_RULE if deepep.serves(phase, topology) else GATHERED_RULE


def dispatch_dtype(model: ModelSpec) -> str:
    return "fp8" if model.weight_dtype == "fp8" else "bf16"  # fp8 for block-quantised weights


def reads_map(model: ModelSpec) -> bool:
    return model.architecture in READS_MAP


def default_placement(model: ModelSpec, gpus: int, redundant: int) -> Placement:
    return cyclic_placement(model, gpus, redundant)


def map_limits(model: ModelSpec, slots: int, gpus: int) -> list[Violation]:
    del gpus
    if slots <= model.experts or model.architecture not in WITHOUT_REDUNDANCY:
        return []
    serves = f"SGLang {VERSION} serves {model.architecture} without redundant experts only"
    return [Violation("redundant", f"{serves}; use --redundant 0")]


def limits(problem: Problem) -> list[Violation]:
    found = uneven_nodes(problem.topology, "SGLang starts as many ranks on each node")
    if not reads_map(problem.model):
        return found
    found += map_limits(problem.model, problem.slots, problem.gpus) + _draft_limits(problem)
    tokens = problem.workload.tokens_per_rank
    if problem.workload.phase == "decode" and tokens > MOST_DISPATCH_TOKENS:
        most = f"SGLang dispatches up to {MOST_DISPATCH_TOKENS} tokens a rank in low latency mode"
        found.append(Violation("dispatch-tokens", f"{most}, not {tokens}"))
    return found + deepep.limits(problem, pads_hidden=False)


def judge(problem: Problem, version: str | None = None, role: str = MIXED) -> Verdict:
    release, _ = find_release(TITLE, RELEASES, version)
    return of_limits(TITLE, release.version, limits(problem), role)


def emit(
    placement: Placement, problem: Problem, model_path: str, version: str | None = None, role: str = MIXED
) -> Emission:
    """Map and launch script.

    Where SGLang would not read the map, a launch without map and redundant experts.
    """
    check_role(TITLE, role, ROLES, problem.workload.phase)
    release, notes = find_release(TITLE, RELEASES, version)
    refuse_broken(placement, problem, limits(problem))
    if release.reads_map(problem.model):
        _refuse_gathering(problem, release)
        ignored = ""
        notes += tuple(_notes(placement, problem, release))
        files = {MAP_NAME: map_text(rows_by_layer(placement), problem.model, problem.gpus)}
    else:
        ignored = _ignored(problem, release)
        without = (
            "the launch holds neither map nor redundant experts, and the plan's balance does not apply to it"
        )
        notes += (f"WARNING: {ignored}; {without}",)
        files = {}
    commands = [node_words(problem, model_path, node, release) for node in range(problem.topology.node_count)]
    title = f"{TITLE} {version or release.version}, {problem.model.name} on {problem.gpus} GPUs"
    files["launch.sh"] = script.per_node(title, notes, problem.topology, commands)
    return Emission(files, files["launch.sh"], notes, ignored, tuple(map(node_command, commands)))


def _ignored(problem: Problem, release: Release) -> str:
    architecture = problem.model.architecture
    return (
        f"SGLang {release.version} does not read a map for {architecture}: "
        "it would serve its default placement, not the plan's"
    )


def _refuse_gathering(problem: Problem, release: Release) -> None:
    """Before 0.5.23 layers without an all-to-all are not known to serve a map rightly (sglang#39580, #32962).

    Those of some models took experts for slots, or each rank its own replica.
    """
    pair = deepep.apart(problem.topology)
    if GATHERED_RULE in release.flags or problem.workload.phase == "decode" or not pair:
        return
    raise BadInput(
        f"DeepEP's normal mode needs NVLink between GPUs {pair[0]} and {pair[1]}, "
        f"and SGLang {release.version} is not known to serve a map rightly "
        f"without an all-to-all: use {VERSION}, --phase decode, "
        f"or nodes whose {deepep.NVLINK_PEERS} GPUs NVLink joins"
    )


def _notes(placement: Placement, problem: Problem, release: Release) -> list[str]:
    old = f"releases without {ATTN_DP} want --dp-size {problem.gpus} --enable-dp-attention in its place"
    return [
        *([f"SGLang {VERSION}: {old}"] if release.version == VERSION else []),
        *draft_rows_lost(TITLE, placement, problem),
        *_bare_draft_notes(problem),
        *deepep.notes(problem.topology, problem.workload.phase, "--moe-a2a-backend none"),
    ]


def _bare_draft(model: ModelSpec) -> str:
    """What is said of a draft layer that is built without redundant slots; empty where the model has none.

    0.5.23, deepseek_v2.py: that of DeepSeek-V4 (sglang#7893 has an older case of it).
    """
    if not model.draft_layer_ids or model.architecture not in BARE_DRAFT:
        return ""
    layer = model.draft_layer_ids[0]
    return f"draft layer {layer}: SGLang gives it {model.experts} slots, none of them redundant"


def _bare_draft_notes(problem: Problem) -> list[str]:
    model, bare = problem.model, _bare_draft(problem.model)
    if not problem.redundant or not bare:
        return []
    held = f"rank r holds its experts from r * {model.experts // problem.gpus} on"
    return [f"WARNING: {bare}: with MTP on, {held}, and no replica"]


def _draft_limits(problem: Problem) -> list[Violation]:
    experts, bare = problem.model.experts, _bare_draft(problem.model)
    if not bare or not experts % problem.gpus:
        return []
    text = (
        f"{bare}, and they do not divide over {problem.gpus} ranks: MTP fails at start; "
        f"use an EP size that divides {experts}, or keep MTP off and say --no-draft"
    )
    return [Violation("draft", text)]
