"""The map of the vLLM plugin, plan_map.json: its sizes, and the rows of main and draft model apart."""

from collections.abc import Mapping, Sequence
from typing import Any

from planner.base import dump_json
from planner.engines.common.interface import MapFile
from planner.model import ModelSpec

TITLE = "vLLM plugin map"
MAP_NAME = "plan_map.json"
KEYS = ("experts", "slots", "ranks", "layer_ids", "moe", "draft")
SIZES = KEYS[:3]


def map_text(rows: Mapping[int, Sequence[int]], model: ModelSpec, gpus: int) -> str:
    slots = len(next(iter(rows.values())))
    return dump_json(
        {
            "experts": model.experts,
            "slots": slots,
            "ranks": gpus,
            "layer_ids": list(held_layers(model)),
            "moe": [list(rows[layer]) for layer in model.moe_layer_ids],
            "draft": [list(rows[layer]) for layer in model.draft_layer_ids],
        }
    )


def held_layers(model: ModelSpec) -> tuple[int, ...]:
    return model.placed_layer_ids


def read_map(value: Any) -> MapFile | None:
    if not isinstance(value, dict) or not {"moe", "ranks"} <= set(value):
        return None
    problems = [
        f"unknown key {repr(key)[:40]}; known are {', '.join(KEYS)}" for key in value if key not in KEYS
    ]
    problems += [
        f"{key} is {repr(value.get(key))[:40]}; expected a whole number of at least 1"
        for key in SIZES
        if not _is_size(value.get(key))
    ]
    rows = [row for key in ("moe", "draft") for row in _rows(value.get(key), key, problems)]
    layer_ids: Any = value.get("layer_ids")
    if not _are_layer_ids(layer_ids) or len(layer_ids) != len(rows):
        problems.append(f"layer_ids must name the layer of each of the {len(rows)} rows, each once")
        layer_ids, rows = [], []
    slots, gpus = (value[key] if _is_size(value.get(key)) else None for key in ("slots", "ranks"))
    numbered = tuple(zip(layer_ids, rows, strict=True))
    return MapFile(TITLE, numbered, "absolute", slots, gpus, problems=tuple(problems))


def _is_size(value: Any) -> bool:
    return type(value) is int and value >= 1


def _rows(rows: Any, key: str, problems: list[str]) -> list[Any]:
    if isinstance(rows, list):
        return rows
    problems.append(f"{key} must be a list of rows, one for each layer")
    return []


def _are_layer_ids(value: Any) -> bool:
    if not isinstance(value, list) or not all(type(layer) is int and layer >= 0 for layer in value):
        return False
    return len(value) == len(set(value))
