"""Physical to logical: counts and ids of slots become those of the experts that sat in them.

Shapes: W windows, L layers, P slots, E experts, T tokens, K = top_k.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.load.counts import LARGEST, inexact
from planner.load.profile import Counts
from planner.load.recording import Array, Recording, check_size

MOST = LARGEST // 4096  # room for the sum over any number of ranks


@dataclass(frozen=True, eq=False)
class SlotMap:
    """The expert in each slot, by absolute layer id. `source` is the file that says so."""

    source: str
    rows: Mapping[int, npt.NDArray[np.int64]]
    slots: int

    def __post_init__(self) -> None:
        for layer, expert_P in self.rows.items():
            if len(expert_P) != self.slots:
                raise BadInput(
                    f"{self.source}: layer {layer} has {len(expert_P)} slots, other layers have {self.slots}"
                )

    def experts_LTK(self, layer_ids: Sequence[int], slots_LTK: Array) -> Array:
        """The experts in the place of the slots. Every layer has a row here."""
        rows = zip(layer_ids, slots_LTK, strict=True)
        return np.stack([self.rows[layer][slots_TK] for layer, slots_TK in rows])


def slot_map(rows: Any, source: str, experts: int, layer_ids: Sequence[int] | None = None) -> SlotMap:
    """The map in nested lists or an array [L, P], rows by decoder layer unless `layer_ids` names them."""
    what = f"{source}: the physical-to-logical map"
    try:
        expert_LP = np.array(rows)
    except (ValueError, TypeError, OverflowError) as error:
        raise BadInput(f"{what} is not made of equally long rows of whole numbers") from error
    if expert_LP.ndim != 2 or not expert_LP.size or expert_LP.dtype.kind not in "iu":
        held = f"shape {list(expert_LP.shape)} of {expert_LP.dtype}"
        raise BadInput(f"{what} has {held}; expected whole numbers [layer, slot]")
    outside = (expert_LP < 0) | (expert_LP >= experts)
    if outside.any():
        row, slot = (int(index) for index in np.argwhere(outside)[0])
        raise BadInput(
            f"{source}: layer row {row}, slot {slot} of the map holds expert {expert_LP[row, slot]}; "
            f"the model has the experts 0..{experts - 1}"
        )
    ids = range(len(expert_LP)) if layer_ids is None else layer_ids
    return SlotMap(source, dict(zip(ids, expert_LP.astype(np.int64), strict=True)), expert_LP.shape[1])


def logical_counts(
    counts_WLP: Array, layer_ids: Sequence[int], where: str, found: SlotMap, experts: int
) -> Counts:
    """tokens_WLE: each expert gets the counts of its slots. BadInput where a layer with counts has no row."""
    if counts_WLP.shape[2] != found.slots:
        raise BadInput(
            f"{where}: {counts_WLP.shape[2]} counts a layer, but {found.source} maps {found.slots} slots; "
            "give the map it was recorded under"
        )
    counts_WLP = whole_counts(counts_WLP, layer_ids, where)
    check_size(where, len(counts_WLP), len(layer_ids), experts)
    tokens_WLE: Counts = np.zeros((len(counts_WLP), len(layer_ids), experts), dtype=np.int64)
    for row, layer in enumerate(layer_ids):
        if layer in found.rows:
            for slot, expert in enumerate(found.rows[layer]):
                tokens_WLE[:, row, expert] += counts_WLP[:, row, slot]
        elif counts_WLP[:, row].any():
            unmapped = f"layer {layer} has counts of slots, but no row in the map {found.source}"
            raise BadInput(f"{where}: {unmapped}")
    return tokens_WLE


def logical_trace(recording: Recording, layer_ids: Sequence[int], found: SlotMap) -> Recording:
    """The same trace with the experts in the place of the slots."""
    slots_LTK = recording.values
    if slots_LTK.dtype.kind not in "iu" or (slots_LTK < 0).any() or (slots_LTK >= found.slots).any():
        raise BadInput(
            f"{recording.path}: the trace holds ids outside the {found.slots} slots that {found.source} maps"
        )
    missing = sorted(set(layer_ids) - set(found.rows))
    if missing:
        raise BadInput(f"{recording.path}: layer {missing[0]} has no row in the map {found.source}")
    return replace(recording, values=found.experts_LTK(layer_ids, slots_LTK), logical=True)


def whole_counts(values: Array, layer_ids: Sequence[int], where: str) -> Counts:
    """Counts [window, layer, slot] as int64, checked before a sum hides a counter that wrapped around."""
    if values.dtype.kind == "f":
        bad = inexact(values)
    elif values.dtype.kind in "iu":
        bad = (values < 0) | (values > MOST)
    else:
        raise BadInput(f"{where}: counts are of type {values.dtype}; expected whole numbers")
    if bad.any():
        window, row, slot = (int(index) for index in np.argwhere(bad)[0])
        raise BadInput(
            f"{where}: window {window}, layer {layer_ids[row]}, column {slot}: "
            f"the count is {values[window, row, slot]}; counts are whole and not negative "
            "(an int32 counter that wrapped around is: record shorter windows)"
        )
    return values.astype(np.int64)
