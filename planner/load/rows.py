"""A Recording's rows become a model's layers: ids resolved, every count checked, dense rows dropped, missing layers filled.

Shapes: W windows, L layers, E experts.
"""

from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.load.formats import Recording, check_size
from planner.load.profile import Counts
from planner.model import ModelSpec

OFF_MEDIAN = 0.01  # a layer's total that differs by more than this share of the median is worth a note


def resolve_layers(recording: Recording, rows: int, model: ModelSpec) -> tuple[int, ...]:
    """Absolute layer ids of the file's rows: those it names, or the model's MoE layers, or all its decoder layers."""
    if recording.layer_ids is not None:
        known = set(range(model.layers)) | set(model.placed_layer_ids)
        unknown = sorted(set(recording.layer_ids) - known)
        if unknown:
            raise BadInput(
                f"{recording.path}: layer {unknown[0]} is not one of {model.name}, whose layers are {spans(sorted(known))}; ids count decoder layers from 0"
            )
        return recording.layer_ids
    if rows == len(model.moe_layer_ids):
        return model.moe_layer_ids
    if rows == model.layers:
        return tuple(range(model.layers))
    raise BadInput(
        f"{recording.path}: {rows} layer rows, but {model.name} has {len(model.moe_layer_ids)} MoE layers ({model.layers} decoder layers); "
        "name the rows with 'layer_ids'"
    )


def fit_counts(recording: Recording, model: ModelSpec) -> tuple[Counts, tuple[int, ...], list[str]]:
    """(tokens_WLE, ascending ids of its MoE and draft layers, notes) of a recording of counts."""
    experts = recording.values.shape[2]
    if experts != model.experts:
        raise BadInput(
            f"{recording.path}: {experts} experts a layer, but {model.name} has {model.experts}; counts of physical slots (redundant experts included) "
            "need their physical-to-logical map: give it with --map"
        )
    layer_ids = np.array(resolve_layers(recording, recording.values.shape[1], model))
    check_size(recording.path, *recording.values.shape)
    tokens_WLE = _whole(recording, layer_ids)
    placed_L = np.isin(layer_ids, model.placed_layer_ids)
    dense = layer_ids[~placed_L]
    loaded = dense[tokens_WLE[:, ~placed_L].any(axis=(0, 2))]
    if len(loaded):
        raise BadInput(
            f"{recording.path}: layer {loaded[0]} has assignments, but {model.name} has no experts there (its MoE layers are {spans(model.moe_layer_ids)}); "
            "layer ids count every decoder layer from 0, dense ones included"
        )
    if not placed_L.any():
        raise BadInput(
            f"{recording.path}: no row is a MoE layer of {model.name}; those are {spans(model.moe_layer_ids)}"
        )
    rows = np.flatnonzero(placed_L)[np.argsort(layer_ids[placed_L])]
    notes = (
        [
            f"{recording.path}: {_layers(dense.tolist())} of {model.name} hold no experts; their zero rows are left out"
        ]
        if len(dense)
        else []
    )
    return np.ascontiguousarray(tokens_WLE[:, rows]), tuple(layer_ids[rows].tolist()), notes


def _whole(recording: Recording, layer_ids: npt.NDArray[np.int64]) -> Counts:
    """The counts as int64, never through a narrower float; BadInput with the first cell that is no count."""
    values = recording.values
    if values.dtype.kind == "f":
        bad = (
            ~np.isfinite(values)
            | (values < 0)
            | (values != np.floor(values))
            | (values >= _exact_below(values.dtype))
        )
    elif values.dtype.kind == "u":
        bad = values > np.iinfo(np.int64).max
    elif values.dtype.kind == "i":
        bad = values < 0
    elif values.dtype.kind == "O":
        bad = np.frompyfunc(
            lambda value: type(value) not in (int, float) or value > np.iinfo(np.int64).max, 1, 1
        )(values).astype(bool)
    else:
        bad = np.ones(values.shape, dtype=bool)
    if bad.any():
        window, row, expert = (int(index) for index in np.argwhere(bad)[0])
        name = f"window {recording.window_names[window]!r}" if recording.window_names else f"window {window}"
        value = values[window, row, expert]
        raise BadInput(
            f"{recording.path}: {name}, layer {layer_ids[row]}, expert {expert}: the count is {str(value)[:40]}; {_why(value)}"
        )
    return values.astype(np.int64)


def _exact_below(dtype: np.dtype[Any]) -> float:
    """Up to where floats of this type hold every whole number: 2^24 for float32, 2^53 for float64."""
    return float(2.0 ** min(np.finfo(dtype).nmant + 1, 53))


def _why(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return "counts are whole numbers"
    if isinstance(value, float | np.floating) and not np.isfinite(value):
        return "counts are finite; drop the windows with a broken counter"
    if value < 0:
        return "counts cannot be negative (an int32 counter that wrapped around looks like this: record shorter windows)"
    if value == int(value):
        return "a float of this size, or a number past int64, is no longer exact; write counts as integers below 2^63"
    return "counts are whole numbers; give assignments, not shares or averages"


def check_totals(source: str, tokens_WLE: Counts, layer_ids: tuple[int, ...]) -> list[str]:
    """Notes on rows without signal and rows whose total is off; BadInput where nothing was counted or sums pass int64."""
    if tokens_WLE.sum(dtype=np.float64) >= 2.0**63:
        raise BadInput(
            f"{source}: the counts sum to {tokens_WLE.sum(dtype=np.float64):.3g}, past 2^63; record shorter windows"
        )
    totals_WL = tokens_WLE.sum(axis=2)
    silent_L = ~totals_WL.any(axis=0)
    if silent_L.all():
        raise BadInput(f"{source}: every count is zero; record while the model serves requests")
    notes = [
        f"layer {layer}: no assignments; treated as evenly loaded"
        for layer, silent in zip(layer_ids, silent_L, strict=True)
        if silent
    ]
    heard = [layer for layer, silent in zip(layer_ids, silent_L, strict=True) if not silent]
    totals_WL = totals_WL[:, ~silent_L]
    median_W1 = np.median(totals_WL, axis=1, keepdims=True)
    off_WL = np.abs(totals_WL - median_W1) / np.maximum(median_W1, 1)
    off = [layer for layer, worst in zip(heard, off_WL.max(axis=0), strict=True) if worst > OFF_MEDIAN]
    if off:
        notes.append(
            f"{_layers(off)}: totals differ from the median over layers by up to {off_WL.max():.1%} in a window; "
            "layers measured together have equal totals, so suspect padding, warm-up or partial ranks"
        )
    return notes


def fill_layers(
    tokens_WLE: Counts, layer_ids: tuple[int, ...], model: ModelSpec
) -> tuple[Counts, tuple[int, ...], list[str]]:
    """(tokens_WLE with a row for every placed layer, ids of the filled rows, notes). A filled row is the mean share of the measured layers."""
    missing = tuple(layer for layer in model.placed_layer_ids if layer not in layer_ids)
    if not missing:
        return tokens_WLE, (), []
    check_size(model.name, len(tokens_WLE), len(model.placed_layer_ids), model.experts)
    filled_WLE = np.empty((len(tokens_WLE), len(model.placed_layer_ids), model.experts), dtype=np.int64)
    filled_WLE[:] = np.array([_mean_row(tokens_LE) for tokens_LE in tokens_WLE])[:, None]
    filled_WLE[:, [model.placed_layer_ids.index(layer) for layer in layer_ids]] = tokens_WLE
    heard = [
        layer for layer, total in zip(layer_ids, tokens_WLE.sum(axis=(0, 2)).tolist(), strict=True) if total
    ]
    mean = f"given the mean share of the measured {_layers(heard)}"
    drafts = [layer for layer in missing if layer in model.draft_layer_ids]
    others = [layer for layer in missing if layer not in model.draft_layer_ids]
    notes = [f"{_layers(others)}: not measured; {mean}"] if others else []
    return (
        filled_WLE,
        missing,
        notes
        + [
            f"no load for layer {layer}, a draft layer; {mean}, a plan has the engine's default row there"
            for layer in drafts
        ],
    )


def _mean_row(tokens_LE: Counts) -> Counts:
    """Mean share of the layers with signal, as counts that sum to their mean total (largest remainders, ties to the lower expert)."""
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


def spans(ids: "list[int] | tuple[int, ...]") -> str:
    """
    >>> spans([0, 1, 2, 7, 9])
    '0-2, 7, 9'
    """
    runs = [[layer for _, layer in run] for _, run in groupby(enumerate(ids), lambda pair: pair[1] - pair[0])]
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _layers(ids: "list[int] | tuple[int, ...]") -> str:
    return f"layer{'s' if len(ids) > 1 else ''} {spans(ids)}"
