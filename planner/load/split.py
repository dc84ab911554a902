"""A load's windows apart and together: what a plan is fitted to, what it is judged on, long ones short."""

from dataclasses import replace
from itertools import groupby, pairwise

import numpy as np

from planner.base import BadInput
from planner.load.profile import LoadProfile, Trace


def split_windows(load: LoadProfile, held_out: float = 1 / 3) -> tuple[LoadProfile, LoadProfile | None]:
    """(fitted, held out): the last windows, a share `held_out` of them but at least one on either side.

    One window cannot be split. Windows keep their order, so of a time series the held-out part is the future.
    A trace is split by sequence, never by token. Of several domains each is split by itself, and one of a
    single window is fitted whole; where every domain is a single window, they are split like any series.
    """
    if not 0 <= held_out < 1:
        raise BadInput(f"the held-out share is {held_out}; it must be at least 0 and less than 1")
    if load.windows == 1 or held_out == 0:
        return load, None
    chosen: list[int] = []
    for first, end in _runs(load):
        windows = end - first
        chosen += range(end - min(max(round(windows * held_out), 1), windows - 1), end)
    fitted = sorted(set(range(load.windows)) - set(chosen))
    return load.with_windows(fitted), load.with_windows(chosen)


def split_notes(fitted: LoadProfile, held_out: LoadProfile | None) -> tuple[str, ...]:
    """What a reader must know of domains that are on one side only."""
    if held_out is None:
        return ()
    whole = [name for name in held_out.domain_names if name not in fitted.domain_names]
    unjudged = [name for name in fitted.domain_names if name not in held_out.domain_names]
    if whole:
        why = "nothing of it was fitted, since every file holds one window"
        return (f"{', '.join(whole)}: held out whole, {why}",)
    if unjudged:
        return (f"{', '.join(unjudged)}: one window only, so nothing of it is held out",)
    return ()


def merge_windows(load: LoadProfile, at_most: int = 16) -> LoadProfile:
    """The same assignments in at most `at_most` windows, of each domain where there are several.

    Neighbours are summed, in groups whose sizes differ by one at most.
    """
    groups = window_groups(load, at_most)
    if len(groups) == load.windows:
        return load
    names, trace = load.window_names, load.trace
    if trace is not None:
        lengths = tuple(sum(trace.sequence_lengths[first:end]) for first, end in groups)
        trace = Trace(trace.experts_LTK, lengths)
    return replace(
        load,
        tokens_WLE=np.add.reduceat(load.tokens_WLE, [first for first, _ in groups], axis=0),
        window_names=tuple(_span(names[first:end]) for first, end in groups) if names else (),
        domains=tuple(load.domains[first] for first, _ in groups) if load.domains else (),
        trace=trace,
        notes=(*load.notes, f"{load.windows} windows merged into {len(groups)}, neighbours together"),
    )


def window_groups(load: LoadProfile, at_most: int) -> list[tuple[int, int]]:
    """(first, end) of each group of neighbouring windows: at most `at_most`, or as many of each domain."""
    if at_most < 1:
        raise BadInput(f"windows are to be merged into {at_most}; it must be at least 1")
    groups: list[tuple[int, int]] = []
    for first, end in _domain_runs(load):
        count = min(at_most, end - first)
        groups += pairwise(first + group * (end - first) // count for group in range(count + 1))
    return groups


def _domain_runs(load: LoadProfile) -> list[tuple[int, int]]:
    """(first, end) of the windows of each domain, the whole load where it is one series."""
    sizes = [len(list(group)) for _, group in groupby(load.domains or ("",) * load.windows)]
    return list(pairwise([0, *np.cumsum(sizes).tolist()]))


def _runs(load: LoadProfile) -> list[tuple[int, int]]:
    """(first, end) of what is split by itself: each domain of several windows, or else the whole series."""
    several = [(first, end) for first, end in _domain_runs(load) if end - first > 1]
    return several or [(0, load.windows)]


def _span(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}"
