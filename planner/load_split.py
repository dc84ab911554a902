"""A load's windows apart and together: what a plan is fitted to, what it is judged on, and long series made short."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from planner.errors import BadInput
from planner.load import LoadProfile, Trace


def split_windows(load: LoadProfile, held_out: float = 1 / 3) -> tuple[LoadProfile, LoadProfile | None]:
    """(fitted, held out): the last windows, a share `held_out` of them but at least one on either side; one window cannot be split.

    Windows keep their order, so for a time series the held-out part is the future. A trace is split by sequence, never by token.
    """
    if not 0 <= held_out < 1:
        raise BadInput(f"the held-out share is {held_out}; it must be at least 0 and less than 1")
    if load.windows == 1 or held_out == 0:
        return load, None
    first = load.windows - min(max(round(load.windows * held_out), 1), load.windows - 1)
    return load.with_windows(list(range(first))), load.with_windows(list(range(first, load.windows)))


def merge_windows(load: LoadProfile, at_most: int = 16) -> LoadProfile:
    """The same assignments in at most `at_most` windows: neighbours are summed, in groups whose sizes differ by one at most."""
    if at_most < 1:
        raise BadInput(f"windows are to be merged into {at_most}; it must be at least 1")
    if load.windows <= at_most:
        return load
    edges = [group * load.windows // at_most for group in range(at_most + 1)]
    groups = list(pairwise(edges))
    trace = load.trace
    if trace is not None:
        trace = Trace(trace.experts_LTK, tuple(sum(trace.sequence_lengths[first:end]) for first, end in groups))
    return replace(
        load,
        tokens_WLE=np.add.reduceat(load.tokens_WLE, edges[:-1], axis=0),
        window_names=tuple(_span(load.window_names[first:end]) for first, end in groups) if load.window_names else (),
        trace=trace,
        notes=(*load.notes, f"{load.windows} windows merged into {at_most}, neighbours together"),
    )


def _span(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}"
