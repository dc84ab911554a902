"""RTP-LLM's phy2log: a bare list with a row of experts for every decoder layer."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from planner.base import dump_json
from planner.engines.common.interface import MapFile
from planner.model import ModelSpec

MAP_NAME = "phy2log.json"
_KIND = "RTP-LLM phy2log"


def map_text(rows: Mapping[int, Sequence[int]], model: ModelSpec, gpus: int) -> str:
    """A row for every decoder layer, dense ones too: the trivial one, of which nothing is loaded."""
    del gpus
    slots = len(next(iter(rows.values())))
    dense_P = (np.arange(slots) % model.experts).tolist()
    return dump_json([list(rows.get(layer, dense_P)) for layer in held_layers(model)])


def held_layers(model: ModelSpec) -> tuple[int, ...]:
    return tuple(range(model.layers))


def read_map(value: Any) -> MapFile | None:
    """A bare list of rows. RTP-LLM itself checks how many there are, and the length of the first."""
    if not isinstance(value, list) or not value or not all(isinstance(row, list) and row for row in value):
        return None
    return MapFile(_KIND, tuple(enumerate(value)), "decoder")
