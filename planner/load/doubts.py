"""Figures that look like something else than served traffic: nothing is dropped, a note says what to look at.

A silent or partial layer, totals that no whole number of tokens has, dummy tokens, warm-up, padding.
Shapes: W windows, L layers, E experts.
"""

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.load.profile import Counts
from planner.load.spans import named_spans, spans
from planner.model import ModelSpec

OFF_MEDIAN = 0.01  # a layer's total that differs by more than this share of the median is worth a note
PARTIAL = 0.25  # by this share more than can be: tokens dropped, or ranks missing; by more, another load
JUDGED_TOKENS = 100  # a window of fewer proves nothing
FEWEST_TOKENS = 4  # fewer may choose the same experts by chance
SMALL_WINDOW = 0.1  # of the median window


def check_totals(source: str, tokens_WLE: Counts, layer_ids: tuple[int, ...]) -> list[str]:
    """Notes on rows without signal and rows whose total is off.

    BadInput where nothing was counted or sums pass int64.
    """
    total = tokens_WLE.sum(dtype=np.float64)
    if total >= 2.0**63:
        raise BadInput(f"{source}: the counts sum to {total:.3g}, past 2^63; record shorter windows")
    totals_WL = tokens_WLE.sum(axis=2)
    heard_L = totals_WL.any(axis=0)
    if not heard_L.any():
        raise BadInput(f"{source}: every count is zero; record while the model serves requests")
    ids_L = np.array(layer_ids)
    notes = _silent_notes(source, ids_L[~heard_L].tolist(), len(ids_L))
    totals_WL = totals_WL[:, heard_L]
    median_W1 = np.median(totals_WL, axis=1, keepdims=True)
    off_WL = np.abs(totals_WL - median_W1) / np.maximum(median_W1, 1)
    off = ids_L[heard_L][off_WL.max(axis=0) > OFF_MEDIAN].tolist()
    if off:
        notes.append(
            f"{named_spans('layer', off)}: totals differ from the median over layers "
            f"by up to {off_WL.max():.1%} in a window; layers measured together have equal totals, "
            "so suspect padding, warm-up or partial ranks"
        )
    return notes


def _silent_notes(source: str, silent: list[int], layers: int) -> list[str]:
    """One sentence, however many they are; a warning where they are most."""
    if not silent:
        return []
    if 2 * len(silent) > layers:
        named = f"{len(silent)} of {layers} layers have no assignments ({named_spans('layer', silent)})"
        likely = "a part of the dump is missing, or it was read along other axes"
        return [f"WARNING: {source}: {named}: {likely}; treated as evenly loaded, no plan is of use there"]
    return [f"{named_spans('layer', silent)}: no assignments; treated as evenly loaded"]


def check_shares(
    source: str, tokens_WLE: Counts, layer_ids: tuple[int, ...], model: ModelSpec, *, dumped: bool
) -> list[str]:
    """A warning where an expert has more than 1 of top_k of a layer's assignments: a token chooses an expert
    at most once, so no traffic looks like that.

    BadInput where an engine's dump has much more: it is read wrongly, or in part. Other files may be made up.
    """
    totals_WL = tokens_WLE.sum(axis=2, dtype=np.float64)
    excess_WL = tokens_WLE.max(axis=2) * float(model.top_k) / np.maximum(totals_WL, 1.0) - 1
    excess_WL[totals_WL < JUDGED_TOKENS * model.top_k] = 0.0
    if excess_WL.max() <= 0:
        return []
    window, row = map(int, np.unravel_index(int(excess_WL.argmax()), excess_WL.shape))
    expert = int(tokens_WLE[window, row].argmax())
    count, total = int(tokens_WLE[window, row, expert]), int(totals_WL[window, row])
    said = (
        f"{source}: window {window}, layer {layer_ids[row]}: expert {expert} has {count:,} of {total:,} "
        f"assignments, more than the 1 in {model.top_k} that is possible where a token of {model.name} "
        f"chooses {model.top_k} experts, each at most once"
    )
    if dumped and excess_WL.max() > PARTIAL:
        raise BadInput(f"{said}; look for another model or top_k, missing ranks, or slots counted as experts")
    cause = "dropped tokens, a missing rank, another model or top_k, or made-up counts"
    return [f"WARNING: {said}; suspect {cause}"]


def odd_totals(source: str, tokens_WLE: Counts, layer_ids: tuple[int, ...], model: ModelSpec) -> list[str]:
    """A note on totals that no whole number of tokens has."""
    totals_WL = tokens_WLE.sum(axis=2)
    odd = np.argwhere(totals_WL % model.top_k)
    if not len(odd):
        return []
    window, row = (int(index) for index in odd[0])
    more = f" (and {len(odd) - 1} more totals)" if len(odd) > 1 else ""
    note = (
        f"{source}: window {window}, layer {layer_ids[row]}: {totals_WL[window, row]} assignments "
        f"are no multiple of the {model.top_k} that each token has{more}; tokens are counted in part "
        "(dropped entries, padding, a missing rank, another top_k), or the counts were scaled"
    )
    return [note]


def suspect_windows(source: str, tokens_WLE: Counts, model: ModelSpec) -> list[str]:
    """Notes on windows whose tokens are all routed alike, and on a small opening."""
    totals_WL = tokens_WLE.sum(axis=2)
    alike_W = _alike_W(tokens_WLE, totals_WL, model)
    notes = []
    if alike_W.any():
        windows = spans(np.flatnonzero(alike_W).tolist())[:80]
        notes.append(
            f"{source}: windows {windows}: every token chooses the same {model.top_k} experts in each layer; "
            "these are dummy tokens (warm-up or padding), leave them out"
        )
    total_W = totals_WL.sum(axis=1)
    opening = int((np.cumsum(total_W >= SMALL_WINDOW * np.median(total_W)) == 0).sum())
    if opening and not alike_W[:opening].all():
        notes.append(
            f"{source}: the first {opening} windows hold less than {SMALL_WINDOW:.0%} "
            "of the median window's assignments: suspect warm-up; leave them out if so"
        )
    return notes


def _alike_W(tokens_WLE: Counts, totals_WL: Counts, model: ModelSpec) -> npt.NDArray[np.bool_]:
    """Whether all tokens of a window choose the same experts, and they are too many for chance."""
    heard_WL = totals_WL > 0
    alike_WL = (np.count_nonzero(tokens_WLE, axis=2) == model.top_k) | ~heard_WL
    many_W = totals_WL.max(axis=1) >= FEWEST_TOKENS * model.top_k
    chosen_W = alike_WL.all(axis=1) & heard_WL.any(axis=1) & many_W
    return np.asarray(chosen_W & (model.top_k < model.experts))
