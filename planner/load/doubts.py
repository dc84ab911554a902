"""Windows that hold something else than served traffic: dummy tokens, warm-up, padding. Nothing is dropped; a note says what to look at.

Shapes: W windows, L layers, E experts.
"""

import numpy as np

from planner.load.profile import Counts
from planner.load.rows import spans
from planner.model import ModelSpec

FEWEST_TOKENS = 4  # fewer may choose the same experts by chance
SMALL_WINDOW = 0.1  # of the median window


def odd_totals(source: str, tokens_WLE: Counts, layer_ids: tuple[int, ...], model: ModelSpec) -> list[str]:
    """A note on totals that no whole number of tokens has."""
    totals_WL = tokens_WLE.sum(axis=2)
    odd = np.argwhere(totals_WL % model.top_k)
    if not len(odd):
        return []
    window, row = (int(index) for index in odd[0])
    more = f" (and {len(odd) - 1} more totals)" if len(odd) > 1 else ""
    what = (
        f"{totals_WL[window, row]} assignments are no multiple of the {model.top_k} that each token has{more}"
    )
    why = "tokens are counted in part (dropped entries, padding, a missing rank, another top_k), or the counts were scaled"
    return [f"{source}: window {window}, layer {layer_ids[row]}: {what}; {why}"]


def suspect_windows(source: str, tokens_WLE: Counts, model: ModelSpec) -> list[str]:
    """Notes on windows whose tokens are all routed alike, and on a small opening."""
    totals_WL = tokens_WLE.sum(axis=2)
    heard_WL = totals_WL > 0
    alike_WL = (np.count_nonzero(tokens_WLE, axis=2) == model.top_k) | ~heard_WL
    alike_W = (
        alike_WL.all(axis=1)
        & heard_WL.any(axis=1)
        & (totals_WL.max(axis=1) >= FEWEST_TOKENS * model.top_k)
        & (model.top_k < model.experts)
    )
    notes = []
    if alike_W.any():
        notes.append(
            f"{source}: windows {spans(np.flatnonzero(alike_W).tolist())[:80]}: every token chooses the same {model.top_k} experts in each layer; "
            "these are dummy tokens (warm-up or padding), leave them out"
        )
    total_W = totals_WL.sum(axis=1)
    opening = int((np.cumsum(total_W >= SMALL_WINDOW * np.median(total_W)) == 0).sum())
    if opening and not alike_W[:opening].all():
        notes.append(
            f"{source}: the first {opening} windows hold less than {SMALL_WINDOW:.0%} of the median window's assignments: suspect warm-up; leave them out if so"
        )
    return notes
