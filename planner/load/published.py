"""Loads for when nobody measured one: published figures that are shipped, and the even load."""

from dataclasses import replace

import numpy as np

from planner.base import data_file
from planner.load.profile import LoadProfile
from planner.load.read import read_load
from planner.load.spans import spans
from planner.model import ModelSpec

FOLDER = data_file("loads")


def shipped_load(model: ModelSpec) -> LoadProfile | None:
    """The published load of this model, by its name without owner and version; None where none is shipped."""
    name = model.name.rsplit("/", maxsplit=1)[-1].lower()
    shipped = sorted(FOLDER.glob("*.yaml"))
    found = [path for path in shipped if name == path.stem or name.startswith(f"{path.stem}-v")]
    if not found:
        return None
    load = read_load(found[:1], model)
    measured = [layer for layer in load.layer_ids if layer not in load.unmeasured_layer_ids]
    figures = "published figures, not measured on your traffic"
    note = f"{figures}; only layers {spans(measured)} are measured"
    return replace(load, notes=(note, *load.notes))


def uniform_load(model: ModelSpec) -> LoadProfile:
    """One window in which every expert of a layer gets the same count: an assumption, labelled as one."""
    tokens_WLE = np.full((1, len(model.placed_layer_ids), model.experts), model.top_k, dtype=np.int64)
    return LoadProfile(
        tokens_WLE,
        model.placed_layer_ids,
        source="assumed",
        unmeasured_layer_ids=model.placed_layer_ids,
        notes=("no load given: every expert assumed equally loaded",),
    )
