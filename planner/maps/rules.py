"""The judge of map files: every fault with its layer, GPU and expert, whatever the format.

What a map is, its engine's module says.
Shapes: L layers, P slots, G GPUs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from planner.base import Infeasible
from planner.engines import MapFile
from planner.load import spans
from planner.model import ModelSpec
from planner.problem import Violation, check_slots, row_violations


def whole_rows(found: MapFile, model: ModelSpec | None, broken: list[Violation]) -> dict[int, list[int]]:
    """Rows of whole numbers by layer id, all as long as the map says; a violation for each other row.

    Without a model, by the file's own numbers.
    """
    numbers = found.layer_ids(model) if model else tuple(number for number, _ in found.rows)
    rows = {layer: _integers(row, layer, broken) for layer, (_, row) in zip(numbers, found.rows, strict=True)}
    slots = found.slots or next((len(row) for row in rows.values() if row is not None), 0)
    for layer, row in rows.items():
        if row is not None and len(row) != slots:
            broken.append(Violation("slots", f"layer {layer}: {len(row)} slots, expected {slots}", layer))
    return {layer: row for layer, row in rows.items() if row is not None and len(row) == slots}


def layer_violations(found: MapFile, model: ModelSpec) -> Iterator[Violation]:
    """Missing rows; and surplus ones where a row's place says its layer.

    A key that the engine never looks up does no harm.
    """
    layers = found.layer_ids(model)
    rows = len(layers)
    if found.numbering == "decoder":
        if rows != model.layers:
            yield Violation("layers", _other_depth(rows, model))
        return
    if found.no_lookup:
        yield from _stray_rows(layers, model)
    most = len(model.moe_layer_ids if found.numbering == "moe" else model.placed_layer_ids)
    if found.numbering != "absolute" and rows > most:
        hint = "; rows count MoE layers, dense ones have none" if rows == model.layers else ""
        text = f"{rows} rows, and {model.name} has {most} layers that could have one{hint}"
        yield Violation("layers", text)
    for layer in model.placed_layer_ids if found.needs_draft_rows else model.moe_layer_ids:
        if layer not in layers:
            draft = layer in model.draft_layer_ids
            why = " (a draft layer: the engine asks for it when MTP is on)" if draft else ""
            yield Violation("layers", f"layer {layer} of {model.name} has no row{why}", layer)


def _stray_rows(layers: Sequence[int], model: ModelSpec) -> Iterator[Violation]:
    """Rows of tensors without an engine that looks them up: each must be of a layer that holds experts."""
    for layer in layers:
        if layer not in model.placed_layer_ids:
            held = spans(model.placed_layer_ids)
            text = f"layer {layer} has a row, and {model.name} has experts in layers {held} alone"
            yield Violation("layers", text, layer)


def _other_depth(rows: int, model: ModelSpec) -> str:
    needed = f"{model.layers} decoder layers, each of which needs a row in its place"
    text = f"{rows} rows, and {model.name} has {needed}"
    if rows != len(model.moe_layer_ids):
        return text
    return (
        f"{text}; there is one row for each MoE layer, "
        "so the engine would give layers the rows of later ones: dense layers need a row too"
    )


def cell_violations(
    rows: dict[int, list[int]], experts: int, gpus: int | None, model: ModelSpec | None
) -> Iterator[Violation]:
    """The judge's rules of rows. Without an EP size nothing is said of duplicates, nor of divisibility."""
    expert_LP, layer_ids = rows_LP(rows), tuple(rows)
    slots = expert_LP.shape[1]
    if experts > slots:
        few = f"and a row has {slots} slots, so some expert has none"
        if model is None:  # an absurd id would make the count below as large as itself
            row, slot = np.unravel_index(int(expert_LP.argmax()), expert_LP.shape)
            layer, expert = layer_ids[row], int(expert_LP[row, slot])
            where = f"layer {layer}, slot {slot}: expert id {expert}"
            yield Violation("slots", f"{where} implies {experts} experts, {few}", layer, expert=expert)
            return
        yield Violation("slots", f"{model.name} has {experts} experts, {few}")
    for violation in row_violations(expert_LP, layer_ids, experts, gpus or 1):
        if gpus is None and violation.rule == "distinct":
            continue
        nearest = _nearest(model, gpus, slots) if violation.rule == "divides" else None
        yield replace(violation, text=nearest or violation.text, gpu=violation.gpu if gpus else None)


def rows_LP(rows: dict[int, list[int]]) -> npt.NDArray[np.int64]:
    return np.array(list(rows.values()), dtype=np.int64).reshape(len(rows), -1)


def clean_sizes(expert_LP: npt.NDArray[np.int64]) -> list[int]:
    """EP sizes, divisors of the slot count, for which no GPU holds an expert twice."""
    slots = expert_LP.shape[1]
    sizes = (size for size in range(1, slots + 1) if slots % size == 0)
    return [
        size
        for size in sizes
        if not (np.diff(np.sort(expert_LP.reshape(len(expert_LP), size, -1), axis=2), axis=2) == 0).any()
    ]


def _integers(row: Any, layer: int, broken: list[Violation]) -> list[int] | None:
    """The row, or None and a violation where a cell is no whole number that an expert id could be."""
    fault = _fault(row, layer)
    if fault is None:
        return cast("list[int]", row)
    broken.append(fault)
    return None


def _fault(row: Any, layer: int) -> Violation | None:
    """The first thing wrong with a row by itself."""
    if not isinstance(row, list) or not row:
        held = "empty" if row == [] else f"a {type(row).__name__}"
        return Violation("integer", f"layer {layer}: the row is {held}; expected a list of expert ids", layer)
    for slot, cell in enumerate(row):
        if type(cell) is not int:
            text = f"layer {layer}, slot {slot}: {repr(cell)[:40]} is not a whole number"
            return Violation("integer", text, layer)
        if not -(2**31) <= cell < 2**31:
            text = f"layer {layer}, slot {slot}: expert id {_rounded(cell)} is out of every range"
            return Violation("range", text, layer)
    return None


def _rounded(number: int) -> str:
    """A number that may have thousands of digits, in a few.

    >>> _rounded(-(10**30)), _rounded(10**400)
    ('-1e+30', '1e+400')
    """
    try:
        return f"{number:.3g}"
    except OverflowError:  # past the largest float
        digits = str(abs(number))
        return f"{'-' if number < 0 else ''}{int(digits[:4]) / 1000:.3g}e+{len(digits) - 1}"


def _nearest(model: ModelSpec | None, gpus: int | None, slots: int) -> str | None:
    """What a slot count that does not divide could be instead, in the words of every question's check."""
    try:
        if model and gpus:
            check_slots(model, gpus, slots - model.experts)
    except Infeasible as error:
        return str(error)
    return None
