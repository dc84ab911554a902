"""Layers that nobody measured: each gets the mean share of those that were, so that a plan has a row for it.

Shapes: W windows, L layers, E experts.
"""

from collections.abc import Sequence

import numpy as np

from planner.load.profile import Counts
from planner.load.recording import check_size
from planner.load.spans import named_spans
from planner.model import ModelSpec


def fill_layers(
    tokens_WLE: Counts, layer_ids: tuple[int, ...], model: ModelSpec
) -> tuple[Counts, tuple[int, ...], list[str]]:
    """(tokens_WLE with a row for every placed layer, ids of the filled rows, notes)."""
    placed = model.placed_layer_ids
    missing = tuple(layer for layer in placed if layer not in layer_ids)
    if not missing:
        return tokens_WLE, (), []
    check_size(model.name, len(tokens_WLE), len(placed), model.experts)
    filled_WLE = np.empty((len(tokens_WLE), len(placed), model.experts), dtype=np.int64)
    filled_WLE[:] = np.array([_mean_row(tokens_LE) for tokens_LE in tokens_WLE])[:, None]
    filled_WLE[:, [placed.index(layer) for layer in layer_ids]] = tokens_WLE
    totals_L = tokens_WLE.sum(axis=(0, 2)).tolist()
    heard = [layer for layer, total in zip(layer_ids, totals_L, strict=True) if total]
    return filled_WLE, missing, _notes(missing, heard, model)


def _notes(missing: Sequence[int], heard: Sequence[int], model: ModelSpec) -> list[str]:
    mean = f"given the mean share of the measured {named_spans('layer', heard)}"
    drafts = [layer for layer in missing if layer in model.draft_layer_ids]
    others = [layer for layer in missing if layer not in model.draft_layer_ids]
    notes = [f"{named_spans('layer', others)}: not measured; {mean}"] if others else []
    row = "a plan has the engine's default row there"
    return notes + [f"no load for layer {layer}, a draft layer; {mean}, {row}" for layer in drafts]


def _mean_row(tokens_LE: Counts) -> Counts:
    """Mean share of the layers with signal, as counts that sum to their mean total.

    Whole by largest remainders, ties to the lower expert.
    """
    totals_L = tokens_LE.sum(axis=1)
    heard_LE, heard_L = tokens_LE[totals_L > 0], totals_L[totals_L > 0]
    if not len(heard_L):
        return np.zeros(tokens_LE.shape[1], dtype=np.int64)
    total = round(float(heard_L.mean()))
    exact_E = (heard_LE / heard_L[:, None]).mean(axis=0) * total
    row_E: Counts = np.floor(exact_E).astype(np.int64)
    left = max(total - int(row_E.sum()), 0)
    row_E[np.argsort(row_E - exact_E, kind="stable")[:left]] += 1
    return row_E
