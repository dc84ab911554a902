"""vllm-ascend 0.23.0.post1, model runner v1: static EPLB from an expert map.

Its sources were read (182b75e, 2026-08-22); nothing of it was run.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from planner.base import dump_json
from planner.engines.common import attention, script, usual
from planner.engines.common.command import node_command
from planner.engines.common.interface import Emission, MapFile
from planner.engines.common.layout import cyclic_placement, draft_rows_lost, refuse_broken, rows_by_layer
from planner.engines.common.online import OnlineBalancer
from planner.engines.common.releases import Release, find_release
from planner.engines.common.verdict import MIXED, Finding, Verdict, check_role
from planner.engines.common.vllm_serve import serve_words
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Violation
from planner.topology import Topology

NAME = "vllm_ascend"
TITLE = "vllm-ascend"
VERSION = "0.23.0.post1"
REPLICA_RULE = "fixed-by-source"  # replica ep_rank % n of each expert
ACCELERATOR = "ascend"
DRAFT_IS_OPTIONAL = False
ROLES = (MIXED,)
MAP_NAME = "expert_map.json"
_KIND = "vllm-ascend expert map"
_SOURCE = "ascend_config.py, eplb_utils.py at 182b75e"
_REMOVAL = "static EPLB from an expert map is scheduled for removal in v0.25.1"
RELEASES = (
    Release(VERSION, "sources at 182b75e, read; not run", None),
    Release("0.25.1", "its deprecation note, read", refused=_REMOVAL),
)
ONLINE = OnlineBalancer(
    interval_steps=650,
    window_steps=600,
    stalls=False,
    source="ascend_config.py at 182b75e, read: expert_heat_collection_interval and "
    "algorithm_execution_interval; its default policy, Swift, moves less than the EPLB taken here",
)
replica_rule = usual.one_rule(REPLICA_RULE)
default_placement = cyclic_placement  # assumed


def transport(phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
    """Assumed: a message per token and slot in decode, per token and device in prefill.

    Its communication was not read.
    """
    del topology, model
    return "slot" if phase == "decode" else "rank"


def dispatch_dtype(model: ModelSpec) -> str:
    del model
    return "bf16"  # assumed: what it quantises before dispatch was not read


def reads_map(model: ModelSpec) -> bool:
    return RELEASES[0].reads_map(model)


def map_limits(model: ModelSpec, slots: int, gpus: int) -> list[Violation]:
    del model, slots
    if gpus > 1:
        return []
    return [Violation("gpus", "vllm-ascend's expert map is for an EP size of more than 1")]


def judge(problem: Problem, version: str | None = None, role: str = MIXED) -> Verdict:
    check_role(TITLE, role, ROLES, problem.workload.phase)
    release, _ = find_release(TITLE, RELEASES, version)
    source, broken = f"{_SOURCE}, read", map_limits(problem.model, problem.slots, problem.gpus)
    broken += attention.one_gpu(TITLE, problem)
    refused = (Finding(limit.rule, limit.text, source, refused=True) for limit in broken)
    text = "the map is read by model runner v1, and no weights move while it serves"
    served = Finding("map", text, source, ("--enable-expert-parallel", "--additional-config"))
    return Verdict(TITLE, version or release.version, role, (*refused, served))


def emit(
    placement: Placement, problem: Problem, model_path: str, version: str | None = None, role: str = MIXED
) -> Emission:
    """Map and launch script.

    The script must stay in the plan's folder, whose path it writes into a JSON flag.
    """
    check_role(TITLE, role, ROLES, problem.workload.phase)
    release, notes = find_release(TITLE, RELEASES, version)
    refuse_broken(placement, problem, judge(problem).violations)
    notes += tuple(_notes(placement, problem))
    words = [_command(problem, model_path, node) for node in range(problem.topology.node_count)]
    commands = script.on_devices(problem.topology, words, ACCELERATOR)
    title = f"{TITLE} {version or release.version}, {problem.model.name} on {problem.gpus} NPUs"
    launch = script.per_node(title, notes, problem.topology, commands)
    expert_map = map_text(rows_by_layer(placement), problem.model, problem.gpus)
    started = tuple(node_command(words, accelerator=ACCELERATOR) for words in commands)
    return Emission({MAP_NAME: expert_map, "launch.sh": launch}, launch, notes, commands=started)


def map_text(rows: Mapping[int, Sequence[int]], model: ModelSpec, gpus: int) -> str:
    """MoE layers by a counter from 0; the experts of each device, in rank order."""
    layers = [_entry(number, rows[layer], gpus) for number, layer in enumerate(held_layers(model))]
    return dump_json({"moe_layer_count": len(layers), "layer_list": layers})


def held_layers(model: ModelSpec) -> tuple[int, ...]:
    return model.moe_layer_ids


def read_map(value: Any) -> MapFile | None:
    if not isinstance(value, dict) or not {"moe_layer_count", "layer_list"} & set(value):
        return None
    count, layers = value.get("moe_layer_count"), value.get("layer_list")
    if not isinstance(layers, list) or not layers:
        fault = "layer_list must be a list with an entry for each MoE layer"
        return MapFile(_KIND, (), "moe", problems=(fault,))
    problems = []
    if type(count) is not int or count != len(layers):
        problems.append(f"moe_layer_count is {_shown(count)}, and layer_list has {len(layers)} entries")
    read = ((number, _devices(entry, number, problems)) for number, entry in enumerate(layers))
    held = {number: devices for number, devices in read if devices is not None}
    sizes = sorted({len(devices) for devices in held.values()})
    if len(sizes) > 1:
        problems.append(f"layers have {', '.join(map(str, sizes))} devices; every layer needs as many")
    rows = tuple((number, [expert for experts in held[number] for expert in experts]) for number in held)
    gpus = sizes[0] if len(sizes) == 1 else None
    return MapFile(_KIND, rows, "moe", gpus=gpus, problems=tuple(problems))


def _entry(number: int, row: Sequence[int], gpus: int) -> dict[str, Any]:
    held = enumerate(np.reshape(row, (gpus, -1)).tolist())
    devices = [{"device_id": rank, "device_expert": experts} for rank, experts in held]
    return {"layer_id": number, "device_count": gpus, "device_list": devices}


def _devices(entry: Any, number: int, problems: list[str]) -> list[list[Any]] | None:
    """The experts of each device, or None and a problem. Rank order is the order of the list."""
    where = f"layer_list entry {number}"
    devices = entry.get("device_list") if isinstance(entry, dict) else None
    if not isinstance(devices, list) or not devices:
        problems.append(f"{where}: device_list must be a list with an entry for each device")
        return None
    layer_id, count = entry.get("layer_id"), entry.get("device_count")
    if type(layer_id) is not int or layer_id != number:
        counts = f"it counts MoE layers from 0, so {number} is expected"
        problems.append(f"{where}: layer_id is {_shown(layer_id)}; {counts}")
    if count != len(devices):
        problems.append(
            f"{where}: device_count is {_shown(count)}, and device_list has {len(devices)} entries"
        )
    held: list[Any] = [
        device.get("device_expert") if isinstance(device, dict) else None for device in devices
    ]
    wrong = next((rank for rank, experts in enumerate(held) if not _is_share(experts, held[0])), None)
    if wrong is not None:
        rule = "device_expert must be a list of expert ids, as long on every device"
        problems.append(f"{where}, device {wrong}: {rule}")
        return None
    ids = [device.get("device_id") for device in devices]
    moved = [rank for rank, device_id in enumerate(ids) if device_id != rank]
    if moved:
        found = f"device_id is {_shown(ids[moved[0]])}; devices must be in rank order"
        problems.append(f"{where}, device {moved[0]}: {found}")
    return held


def _is_share(experts: Any, first: Any) -> bool:
    """Whether this is a list of experts as long as the first device's, which was looked at before it."""
    return isinstance(experts, list) and 0 < len(experts) == len(first)


def _shown(value: Any) -> str:
    return repr(value)[:40]


def _command(problem: Problem, model_path: str, node: int) -> list[str]:
    """One node's command, as bash words: vLLM's own flags, and the map in vllm-ascend's configuration."""
    balancer = {"expert_map_path": "@", "num_redundant_experts": problem.redundant}
    before, after = json.dumps({"eplb_config": balancer}, separators=(",", ":")).split("@")
    config = f"'{before}'{script.PLAN_DIR}'/{MAP_NAME}{after}'"
    words = serve_words(problem, model_path, node)
    return [*words, "--enable-expert-parallel", "--additional-config", config]


def _notes(placement: Placement, problem: Problem) -> list[str]:
    read = f"{TITLE}'s rules were read in its sources and not run"
    return [
        f"{read}; model runner v1 only, and static EPLB is scheduled for removal in v0.25.1",
        f"{TITLE} serves NPUs: the plan's topology must describe them",
        *draft_rows_lost(TITLE, placement, problem),
    ]
