"""vllm-ascend 0.23.0.post1, model runner v1: static EPLB from an expert map. Its sources were read (182b75e, 2026-08-22); nothing of it was run."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from planner.base import dump_json
from planner.engines.common import script
from planner.engines.common.command import node_command
from planner.engines.common.interface import Emission, MapFile
from planner.engines.common.layout import cyclic_placement, refuse_broken
from planner.engines.common.releases import Release, find_release
from planner.engines.common.vllm_serve import serve_words
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Violation
from planner.topology import Topology

NAME = "vllm_ascend"
TITLE = "vllm-ascend"
VERSION = "0.23.0.post1"
REPLICA_RULE = "fixed-by-source"  # replica ep_rank % n of each expert
MAP_NAME = "expert_map.json"
RELEASES = (
    Release(VERSION, "sources at 182b75e, read; not run", None),
    Release(
        "0.25.1",
        "its deprecation note, read",
        refused="static EPLB from an expert map is scheduled for removal in v0.25.1",
    ),
)


def transport(phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
    """Assumed: one message per token and slot in decode, per token and device in prefill; its communication was not read."""
    del topology, model
    return "slot" if phase == "decode" else "rank"


def replica_rule(phase: str, topology: Topology) -> str:
    del phase, topology
    return REPLICA_RULE


def dispatch_dtype(model: ModelSpec) -> str:
    del model
    return "bf16"  # assumed: what it quantises before dispatch was not read


def reads_map(model: ModelSpec) -> bool:
    return RELEASES[0].reads_map(model)


def default_placement(model: ModelSpec, gpus: int, redundant: int) -> Placement:
    return cyclic_placement(model, gpus, redundant)  # assumed


def limits(problem: Problem) -> list[Violation]:
    return map_limits(problem.model, problem.slots, problem.gpus)


def map_limits(model: ModelSpec, slots: int, gpus: int) -> list[Violation]:
    del model, slots
    return (
        [Violation("gpus", "vllm-ascend's expert map is for an EP size of more than 1")] if gpus == 1 else []
    )


def emit(placement: Placement, problem: Problem, model_path: str, version: str | None = None) -> Emission:
    """Map and launch script. The script must stay in the plan's folder, whose path it writes into a JSON flag."""
    release, notes = find_release(TITLE, RELEASES, version)
    refuse_broken(placement, problem, limits(problem))
    notes += tuple(_notes(placement, problem))
    commands = [_command(problem, model_path, node) for node in range(problem.topology.node_count)]
    launch = script.per_node(
        f"{TITLE} {version or release.version}, {problem.model.name} on {problem.gpus} NPUs",
        notes,
        problem.topology,
        commands,
    )
    rows = dict(zip(placement.layer_ids, placement.expert_LP.tolist(), strict=True))
    files = {MAP_NAME: map_text(rows, problem.model, problem.gpus), "launch.sh": launch}
    return Emission(
        files, launch, notes, commands=tuple(node_command(words, accelerator="ascend") for words in commands)
    )


def map_text(rows: Mapping[int, Sequence[int]], model: ModelSpec, gpus: int) -> str:
    """MoE layers by a counter from 0; the experts of each device, in rank order."""
    layers = [
        {
            "layer_id": number,
            "device_count": gpus,
            "device_list": [
                {"device_id": rank, "device_expert": held}
                for rank, held in enumerate(np.reshape(rows[layer], (gpus, -1)).tolist())
            ],
        }
        for number, layer in enumerate(held_layers(model))
    ]
    return dump_json({"moe_layer_count": len(layers), "layer_list": layers})


def held_layers(model: ModelSpec) -> tuple[int, ...]:
    return model.moe_layer_ids


def read_map(value: Any) -> MapFile | None:
    if not isinstance(value, dict) or not {"moe_layer_count", "layer_list"} & set(value):
        return None
    count, layers = value.get("moe_layer_count"), value.get("layer_list")
    if not isinstance(layers, list) or not layers:
        return MapFile(
            _KIND, (), "moe", problems=("layer_list must be a list with an entry for each MoE layer",)
        )
    problems = (
        []
        if type(count) is int and count == len(layers)
        else [f"moe_layer_count is {_shown(count)}, and layer_list has {len(layers)} entries"]
    )
    rows = [(number, _row(entry, number, problems)) for number, entry in enumerate(layers)]
    devices = {
        len(entry["device_list"]) for entry, (_, row) in zip(layers, rows, strict=True) if row is not None
    }
    if len(devices) > 1:
        problems.append(
            f"layers have {', '.join(map(str, sorted(devices)))} devices; every layer needs as many"
        )
    gpus = devices.pop() if len(devices) == 1 else None
    return MapFile(
        _KIND,
        tuple((number, row) for number, row in rows if row is not None),
        "moe",
        gpus=gpus,
        problems=tuple(problems),
    )


_KIND = "vllm-ascend expert map"


def _row(entry: Any, number: int, problems: list[str]) -> list[Any] | None:
    """The devices' experts one after the other, or None and a problem. Rank order is the order of the list."""
    where = f"layer_list entry {number}"
    devices = entry.get("device_list") if isinstance(entry, dict) else None
    if not isinstance(devices, list) or not devices:
        problems.append(f"{where}: device_list must be a list with an entry for each device")
        return None
    if entry.get("layer_id") != number or type(entry["layer_id"]) is not int:
        problems.append(
            f"{where}: layer_id is {_shown(entry.get('layer_id'))}; it counts MoE layers from 0, so {number} is expected"
        )
    if entry.get("device_count") != len(devices):
        problems.append(
            f"{where}: device_count is {_shown(entry.get('device_count'))}, and device_list has {len(devices)} entries"
        )
    held: list[Any] = [
        device.get("device_expert") if isinstance(device, dict) else None for device in devices
    ]
    wrong = next(
        (
            rank
            for rank, experts in enumerate(held)
            if not isinstance(experts, list) or not experts or len(experts) != len(held[0])
        ),
        None,
    )
    if wrong is not None:
        problems.append(
            f"{where}, device {wrong}: device_expert must be a list of expert ids, as long on every device"
        )
        return None
    for rank, device in enumerate(devices):
        if device.get("device_id") != rank:
            problems.append(
                f"{where}, device {rank}: device_id is {_shown(device.get('device_id'))}; devices must be in rank order"
            )
            break
    return [expert for experts in held for expert in experts]


def _shown(value: Any) -> str:
    return repr(value)[:40]


def _command(problem: Problem, model_path: str, node: int) -> list[str]:
    """One node's command, as bash words: vLLM's own flags, and the map in vllm-ascend's configuration."""
    words = serve_words(problem, model_path, node)
    before, after = json.dumps(
        {"eplb_config": {"expert_map_path": "@", "num_redundant_experts": problem.redundant}},
        separators=(",", ":"),
    ).split("@")
    return [
        *words,
        "--enable-expert-parallel",
        "--additional-config",
        f"'{before}'{script.PLAN_DIR}'/{MAP_NAME}{after}'",
    ]


def _notes(placement: Placement, problem: Problem) -> list[str]:
    notes = [
        f"{TITLE}'s rules were read in its sources and not run; model runner v1 only, and static EPLB is scheduled for removal in v0.25.1",
        f"{TITLE} serves NPUs: the plan's topology must describe them",
    ]
    default = default_placement(problem.model, problem.gpus, problem.redundant)
    for row, layer in enumerate(placement.layer_ids):
        if (
            layer in problem.model.draft_layer_ids
            and (placement.expert_LP[row] != default.expert_LP[row]).any()
        ):
            notes.append(
                f"WARNING: draft layer {layer}: {TITLE}'s map has no row for it and serves it in its default placement, not in the plan's"
            )
    return notes
