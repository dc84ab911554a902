"""SGLang 0.5.23. It reads a map file, for the models that offer their layout. The rules were read in its wheel; tests/engines holds map, flags and
replica choice against the engine itself, on a CPU.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from planner.base import BadInput, dump_json
from planner.engines.common import deepep, script
from planner.engines.common.command import node_command
from planner.engines.common.interface import Emission, MapFile
from planner.engines.common.layout import cyclic_placement, refuse_broken, uneven_nodes
from planner.engines.common.releases import Release, find_release
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Violation
from planner.topology import Topology

NAME = "sglang"
TITLE = "SGLang"
VERSION = "0.5.23"
REPLICA_RULE = "nearest-static"
GATHERED_RULE = "row-index"  # without an all-to-all: dynamic dispatch, the same choice on every rank; earlier releases are known to get it wrong
MAP_NAME = "expert_location.json"
KEY = "physical_to_logical_map"
EPLB_KEYS = {
    "layer_ids",
    "expert_count",
    "logical_to_physical_map",
}  # beside KEY these are the tensors of a balancer, not a map of SGLang
ATTN_DP = "--attn-dp-size"
DISPATCH_TOKENS, MOST_DISPATCH_TOKENS = (
    128,
    1024,
)  # SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK: default, and the most it asserts

WITHOUT_REDUNDANCY = frozenset(
    {"bailing_moe", "llada2_moe", "longcat_flash"}
)  # offer their layout, but build or assert no redundant slots
READS_MAP = WITHOUT_REDUNDANCY | {  # model_type of the classes with get_model_config_for_expert_location
    *(
        "deepseek_v2",
        "deepseek_v3",
        "deepseek_v32",
        "deepseek_v4",
        "kimi_k2",
        "kimi_k25",
        "glm4_moe",
        "glm4_moe_lite",
        "glm_moe_dsa",
    ),
    *(
        "qwen2_moe",
        "qwen3_moe",
        "qwen3_next",
        "qwen3_5_moe",
        "qwen3_5_moe_text",
        "qwen3_vl_moe",
        "qwen3_vl_moe_text",
    ),
    *(
        "exaone_moe",
        "gpt_oss",
        "mimo_v2_flash",
        "minimax_m2",
        "minimax_m3",
        "minimax_m3_vl",
        "nemotron_h",
        "step3p5",
        "step3p7",
    ),
}
BARE_DRAFT = frozenset({"deepseek_v4"})  # draft layers without redundant slots
RELEASES = (
    Release(
        "0.5.21",
        "its wheel, read: the same map and rules, without --attn-dp-size; its list of models is taken from 0.5.23",
        READS_MAP,
    ),
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
    return [
        Violation(
            "redundant",
            f"SGLang {VERSION} serves {model.architecture} without redundant experts only; use --redundant 0",
        )
    ]


def limits(problem: Problem) -> list[Violation]:
    found = uneven_nodes(problem.topology, "SGLang starts as many ranks on each node")
    if not reads_map(problem.model):
        return found
    found += map_limits(problem.model, problem.slots, problem.gpus) + _draft_limits(problem)
    if problem.workload.phase == "decode" and problem.workload.tokens_per_rank > MOST_DISPATCH_TOKENS:
        text = f"SGLang dispatches up to {MOST_DISPATCH_TOKENS} tokens a rank in low latency mode, not {problem.workload.tokens_per_rank}"
        found.append(Violation("dispatch-tokens", text))
    return found + deepep.limits(problem, pads_hidden=False)


def emit(placement: Placement, problem: Problem, model_path: str, version: str | None = None) -> Emission:
    """Map and launch script. Where SGLang would not read the map, a launch without map and redundant experts."""
    release, notes = find_release(TITLE, RELEASES, version)
    refuse_broken(placement, problem, limits(problem))
    if GATHERED_RULE not in release.flags and release.reads_map(problem.model):
        _refuse_gathering(problem, release)
    ignored = "" if release.reads_map(problem.model) else _ignored(problem, release)
    notes += (
        (
            f"WARNING: {ignored}; the launch holds neither map nor redundant experts, and the plan's balance does not apply to it",
        )
        if ignored
        else ()
    )
    notes += () if ignored else tuple(_notes(placement, problem, release))
    commands = [_command(problem, model_path, node, release) for node in range(problem.topology.node_count)]
    title = f"{TITLE} {version or release.version}, {problem.model.name} on {problem.gpus} GPUs"
    launch = script.per_node(title, notes, problem.topology, commands)
    rows = dict(zip(placement.layer_ids, placement.expert_LP.tolist(), strict=True))
    expert_map = {} if ignored else {MAP_NAME: map_text(rows, problem.model, problem.gpus)}
    return Emission(
        {**expert_map, "launch.sh": launch}, launch, notes, ignored, tuple(map(node_command, commands))
    )


def map_text(rows: Mapping[int, Sequence[int]], model: ModelSpec, gpus: int) -> str:
    """A row for every decoder layer; a dense layer without one gets the trivial map, which the engine walks but does not use."""
    del gpus
    slots = len(next(iter(rows.values())))
    dense_P = (np.arange(slots) % model.experts).tolist()
    return dump_json({KEY: [list(rows.get(layer, dense_P)) for layer in held_layers(model)]})


def held_layers(model: ModelSpec) -> tuple[int, ...]:
    return tuple(range(model.layers))


def read_map(value: Any) -> MapFile | None:
    if not isinstance(value, dict) or KEY not in value or EPLB_KEYS & set(value):
        return None
    problems = [
        f"the key {key!r}: SGLang takes {KEY} alone and fails with a TypeError on any other"
        for key in value
        if key != KEY
    ]
    rows = value[KEY]
    if not isinstance(rows, list) or not rows:
        return MapFile(
            "SGLang expert location",
            (),
            "decoder",
            problems=(*problems, f"{KEY} must be a list of rows, one for each layer"),
        )
    return MapFile("SGLang expert location", tuple(enumerate(rows)), "decoder", problems=tuple(problems))


def _command(problem: Problem, model_path: str, node: int, release: Release) -> list[str]:
    """One node's command, as bash words."""
    nodes = problem.topology.node_count
    words = [
        "python3",
        "-m",
        "sglang.launch_server",
        "--model-path",
        script.quote(model_path),
        "--tp-size",
        str(problem.gpus),
    ]
    if nodes > 1:
        words += [
            "--nnodes",
            str(nodes),
            "--node-rank",
            str(node),
            "--dist-init-addr",
            '"$HEAD_ADDRESS:20000"',
        ]
    if not release.reads_map(problem.model):
        return [*words, "--ep-size", str(math.gcd(problem.model.experts, problem.gpus))]
    decode = problem.workload.phase == "decode"
    if decode and problem.workload.tokens_per_rank > DISPATCH_TOKENS:
        words = [
            "env",
            f"SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK={problem.workload.tokens_per_rank}",
            *words,
        ]
    attention = (
        [ATTN_DP, str(problem.gpus)]
        if ATTN_DP in release.flags
        else ["--dp-size", str(problem.gpus), "--enable-dp-attention"]
    )
    words += ["--ep-size", str(problem.gpus), *attention, "--moe-dense-tp-size", "1"]
    deep = deepep.serves(problem.workload.phase, problem.topology)
    words += (
        ["--moe-a2a-backend", "deepep", "--deepep-mode", "low_latency" if decode else "normal"]
        if deep
        else ["--moe-a2a-backend", "none"]
    )
    words += [
        "--ep-num-redundant-experts",
        str(problem.redundant),
        "--init-expert-location",
        f"{script.PLAN_DIR}/{MAP_NAME}",
    ]
    words += ["--ep-dispatch-algorithm", "static" if deep else "dynamic"]
    return [
        *words,
        "--disable-shared-experts-fusion",
    ]  # a fused shared expert is a slot of its own, which no map has


def _ignored(problem: Problem, release: Release) -> str:
    return f"SGLang {release.version} does not read a map for {problem.model.architecture}: it would serve its default placement, not the plan's"


def _refuse_gathering(problem: Problem, release: Release) -> None:
    """Before 0.5.23 some models' layers without an all-to-all took experts for slots, or each rank its own replica (sglang#39580, #32962)."""
    pair = deepep.apart(problem.topology)
    if pair and not deepep.serves(problem.workload.phase, problem.topology):
        raise BadInput(
            f"DeepEP's normal mode needs NVLink between GPUs {pair[0]} and {pair[1]}, and SGLang {release.version} is not known to serve a map rightly without "
            f"an all-to-all: use {VERSION}, --phase decode, or nodes whose {deepep.NVLINK_PEERS} GPUs NVLink joins"
        )


def _notes(placement: Placement, problem: Problem, release: Release) -> list[str]:
    model = problem.model
    old = f"releases without {ATTN_DP} want --dp-size {problem.gpus} --enable-dp-attention in its place"
    notes = [f"SGLang {VERSION}: {old}"] if release.version == VERSION else []
    default = default_placement(model, problem.gpus, problem.redundant)
    for row, layer in enumerate(placement.layer_ids):
        if layer in model.draft_layer_ids and (placement.expert_LP[row] != default.expert_LP[row]).any():
            notes.append(
                f"WARNING: draft layer {layer}: SGLang's map has no row for it and serves it in its default placement, not in the plan's"
            )
    return (
        notes
        + _bare_draft_notes(problem)
        + deepep.notes(problem.topology, problem.workload.phase, "--moe-a2a-backend none")
    )


def _bare_draft_notes(problem: Problem) -> list[str]:
    """0.5.23, deepseek_v2.py: the draft layer of DeepSeek-V4 is built without redundant slots (sglang#7893 has an older case of it)."""
    model = problem.model
    if not problem.redundant or not model.draft_layer_ids or model.architecture not in BARE_DRAFT:
        return []
    text = f"draft layer {model.draft_layer_ids[0]}: SGLang gives it {model.experts} slots, none of them redundant"
    return [
        f"WARNING: {text}: with MTP on, rank r holds its experts from r * {model.experts // problem.gpus} on, and no replica"
    ]


def _draft_limits(problem: Problem) -> list[Violation]:
    model = problem.model
    if not model.draft_layer_ids or model.architecture not in BARE_DRAFT or not model.experts % problem.gpus:
        return []
    text = (
        f"draft layer {model.draft_layer_ids[0]}: SGLang gives it {model.experts} slots, none of them redundant, and they do not divide over {problem.gpus} "
        f"ranks: MTP fails at start; use an EP size that divides {model.experts}, or keep MTP off and say --no-draft"
    )
    return [Violation("draft", text)]
