"""The plain tensors of DeepSeek's EPLB, in .json or .npz. A format, no engine.

`physical_to_logical_map` [L, P] as its `rebalance_experts` returns it. The tensors name no layers. The
convention here: the n-th row is the n-th MoE layer of the model; rows of its draft layers may follow, in
order; dense layers have none. What is written says so in `layer_ids` (absolute ids), which is also held
against the model when it is read.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from planner.base import dump_json
from planner.engines.common.interface import MapFile
from planner.model import ModelSpec

TITLE = "EPLB tensors"
MAP_NAME = "eplb.json"
KEY = "physical_to_logical_map"
IGNORED_KEYS = {
    "logical_to_physical_map",
    "expert_count",
}  # EPLB's other two answers: both follow from the map


def read_map(value: Any) -> MapFile | None:
    if not isinstance(value, dict) or KEY not in value:
        return None
    problems = [
        f"unknown key {repr(key)[:40]}; expected {KEY}, and layer_ids where the layers are named"
        for key in value
        if key not in {KEY, "layer_ids", *IGNORED_KEYS}
    ]
    rows, layer_ids = value[KEY], value.get("layer_ids")
    if not isinstance(rows, list) or not rows:
        problems.append(f"{KEY} must be a list of rows, one for each MoE layer")
        return MapFile(TITLE, (), "placed", problems=tuple(problems))
    if layer_ids is None:
        return MapFile(TITLE, tuple(enumerate(rows)), "placed", problems=tuple(problems))
    if not _are_layer_ids(layer_ids):
        problems.append("layer_ids must be distinct whole numbers, the absolute id of each row's layer")
    elif len(layer_ids) != len(rows):
        problems.append(f"layer_ids names {len(layer_ids)} layers, and there are {len(rows)} rows")
    else:
        named = tuple(zip(layer_ids, rows, strict=True))
        return MapFile(TITLE, named, "absolute", no_lookup=True, problems=tuple(problems))
    return MapFile(TITLE, (), "absolute", problems=tuple(problems))


def map_text(rows: Mapping[int, Sequence[int]], model: ModelSpec, gpus: int) -> str:
    del gpus
    layer_ids = list(held_layers(model))
    return dump_json({"layer_ids": layer_ids, KEY: [list(rows[layer]) for layer in layer_ids]})


def held_layers(model: ModelSpec) -> tuple[int, ...]:
    return model.placed_layer_ids


def _are_layer_ids(value: Any) -> bool:
    """Whether these are distinct whole numbers of at least 0."""
    if not isinstance(value, list) or not all(type(layer) is int and layer >= 0 for layer in value):
        return False
    return len(value) == len(set(value))
