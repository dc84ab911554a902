"""The engine's online balancer, played over the windows: what it sees, what it makes of it, what that moves.

Between two windows nothing is known, so the load of a window holds from its first step to its last. The
balancer sees counts of its own last steps: drawn from those shares, as many as the steps have, so that what
is luck in them moves weights as it would.

Shapes: W windows, L layers, E experts, J judged windows.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.cost import Cost, cost
from planner.engines import OnlineBalancer, balanced
from planner.load import LoadProfile
from planner.placement import Placement
from planner.planning.paying.rearranging import Rearrangement, mean_of, rearrangement
from planner.planning.paying.series import Series
from planner.problem import Problem

PLAYED = 3  # rearrangements in one window; the others in it are like the last of these
FEWEST = 1e-9  # steps; a piece that is shorter is none

Counts = npt.NDArray[np.int64]


class Piece(NamedTuple):
    """So many steps on one load with one placement."""

    steps: float
    cost: Cost


@dataclass(frozen=True, eq=False)
class Played:
    """What the balancer did over the judged windows."""

    pieces: tuple[Piece, ...]
    rearrangement: Rearrangement  # the mean of those that were played
    rearranged: int  # of them; where none fell into the judged windows, the first after the fitted ones


def once(problem: Problem, series: Series, balancer: OnlineBalancer, seed: int = 0) -> Placement:
    """What the balancer makes of the last fitted steps."""
    return _made(problem, series, balancer, float(series.steps_F.sum()), seed)


def play(
    problem: Problem,
    series: Series,
    balancer: OnlineBalancer,
    default: Placement,
    stall_seconds: float | None = None,
    seed: int = 0,
) -> Played:
    """From the placement that the fitted windows gave it, over the judged ones."""
    placement = once(problem, series, balancer, seed)
    pieces: list[Piece] = []
    moved: list[tuple[float, Rearrangement]] = []
    for window in _stretches(series, balancer.interval_steps):
        for steps, number, times in window.parts:
            if number is not None:
                made = _made(problem, series, balancer, window.began + number * balancer.interval_steps, seed)
                moved.append((times, rearrangement(problem, placement, made, stall_seconds)))
                placement = made
            if steps > FEWEST:
                pieces.append(Piece(steps, cost(problem, placement, window.load)))
    if moved:
        return Played(tuple(pieces), mean_of(moved), len(moved))
    return Played(tuple(pieces), rearrangement(problem, default, placement, stall_seconds), 0)


class _Stretch(NamedTuple):
    """One judged window: parts of (steps, the rearrangement they begin with, as how many it counts)."""

    load: LoadProfile
    began: float  # step at which the judged windows begin
    parts: list[tuple[float, int | None, float]]


def _stretches(series: Series, interval: int) -> Iterator[_Stretch]:
    began, at = float(series.steps_F.sum()), 0.0
    for load, steps in zip(series.judged, series.steps_J.tolist(), strict=True):
        end = at + steps
        first, last = math.floor(at / interval) + 1, math.floor(end / interval)
        numbers = list(range(first, last + 1))[:PLAYED]
        edges = [at, *(number * interval for number in numbers), end]
        parts: list[tuple[float, int | None, float]] = []
        for place, (start, stop) in enumerate(pairwise(edges)):
            number = numbers[place - 1] if place else None
            times = float(last - numbers[-1] + 1) if number is not None and number == numbers[-1] else 1.0
            parts.append((stop - start, number, times))
        yield _Stretch(load, began, parts)
        at = end


def _made(problem: Problem, series: Series, balancer: OnlineBalancer, now: float, seed: int) -> Placement:
    return balanced(problem, seen_LE(problem, series, now - balancer.window_steps, now, seed))


def seen_LE(problem: Problem, series: Series, first: float, end: float, seed: int = 0) -> Counts:
    """Counts of the steps from `first` to `end` of all windows, as a balancer would have them."""
    ends_W = np.cumsum(series.steps_W)
    starts_W = ends_W - series.steps_W
    inside_W = np.clip(np.minimum(ends_W, end) - np.maximum(starts_W, first), 0, None)
    if not inside_W.any():
        inside_W[int(np.searchsorted(ends_W, end).clip(0, len(ends_W) - 1))] = 1.0
    share_LE = sum(
        weight * load.shares_LE for weight, load in zip(inside_W / inside_W.sum(), series.loads, strict=True)
    )
    steps = min(max(end - first, 1.0), max(end, 1.0))
    assignments = int(steps * problem.workload.tokens_per_rank * problem.gpus * problem.model.top_k)
    random = np.random.default_rng([seed, int(end)])
    drawn = random.multinomial(assignments, share_LE / share_LE.sum(axis=1, keepdims=True))
    return np.asarray(drawn, dtype=np.int64)
