"""SGLang's map file: a row for every decoder layer, under one key."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from planner.base import dump_json
from planner.engines.common.interface import MapFile
from planner.model import ModelSpec

MAP_NAME = "expert_location.json"
KEY = "physical_to_logical_map"
# Beside KEY these are the tensors of a balancer, not a map of SGLang.
EPLB_KEYS = {"layer_ids", "expert_count", "logical_to_physical_map"}


def map_text(rows: Mapping[int, Sequence[int]], model: ModelSpec, gpus: int) -> str:
    """A row for every decoder layer.

    A dense layer without one gets the trivial map, which the engine walks but does not use.
    """
    del gpus
    slots = len(next(iter(rows.values())))
    dense_P = (np.arange(slots) % model.experts).tolist()
    return dump_json({KEY: [list(rows.get(layer, dense_P)) for layer in held_layers(model)]})


def held_layers(model: ModelSpec) -> tuple[int, ...]:
    return tuple(range(model.layers))


def read_map(value: Any) -> MapFile | None:
    if not isinstance(value, dict) or KEY not in value or EPLB_KEYS & set(value):
        return None
    fault = f"SGLang takes {KEY} alone and fails with a TypeError on any other"
    problems = [f"the key {key!r}: {fault}" for key in value if key != KEY]
    rows = value[KEY]
    if not isinstance(rows, list) or not rows:
        problems.append(f"{KEY} must be a list of rows, one for each layer")
        rows = []
    return MapFile("SGLang expert location", tuple(enumerate(rows)), "decoder", problems=tuple(problems))
