"""`auto`: the portfolio. Every layer gets the row of the method that serves it best."""

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from planner.placement import Placement
from planner.problem import Problem
from planner.solve import Progress, cpsat, find_method
from planner.solve.arrays import Solved
from planner.solve.packing import peaks

PORTFOLIO = ("linear", "greedy", "refine")  # a tie goes to the earlier, and to them before CP-SAT
LARGEST_FOR_CPSAT = 20_000  # experts x GPUs: beyond, CP-SAT takes its time and finds next to nothing that swaps did not
DETERMINISTIC_SECONDS = 3.0  # for CP-SAT where no time was offered

Score = Callable[[Placement], npt.NDArray[np.float64]]  # one number a layer, lower is better


def solve(problem: Problem, *, seed: int = 0, budget_seconds: float | None = None, progress: Progress | None = None, score: Score | None = None) -> Placement:
    """The placement of `solve_with_bounds`."""
    return solve_with_bounds(problem, seed=seed, budget_seconds=budget_seconds, progress=progress, score=score).placement


def solve_with_bounds(
    problem: Problem, *, seed: int = 0, budget_seconds: float | None = None, progress: Progress | None = None, score: Score | None = None
) -> Solved:
    """No layer scores worse than any method of the portfolio that ran. `score` is the load of the busiest GPU under even split where none is given.

    Small layers also go to CP-SAT, for a proof; larger ones only within a budget. `budget_seconds` is a wall-clock limit: methods that it leaves no
    time for are left out, so an answer that it cut short is not reproducible.
    """
    stop = None if budget_seconds is None else time.monotonic() + budget_seconds
    best = _Best(problem, score or (lambda placement: peaks(problem.shares_LE, placement.expert_LP, problem.gpus)))
    for done, name in enumerate(PORTFOLIO):
        if progress is not None:
            progress(done / (len(PORTFOLIO) + 1), name)
        best.offer(find_method(name)(problem, seed=seed, budget_seconds=None if stop is None else max(stop - time.monotonic(), 0.0)))
    left = None if stop is None else stop - time.monotonic()
    cells = problem.model.experts * problem.gpus
    if (left is None and cells > cpsat.SMALL_CELLS) or (left is not None and (left <= 0 or cells > LARGEST_FOR_CPSAT)):
        return Solved(best.placement, np.zeros(len(problem.model.placed_layer_ids)))
    effort = DETERMINISTIC_SECONDS if left is None else cpsat.TOTAL_DETERMINISTIC_SECONDS
    proven = cpsat.solve_with_bounds(problem, seed=seed, budget_seconds=left, progress=progress, deterministic_seconds=effort)
    best.offer(proven.placement)
    return Solved(best.placement, proven.bound_L)


class _Best:
    """The best row of every layer among the placements offered."""

    def __init__(self, problem: Problem, score: Score) -> None:
        self._problem, self._score = problem, score
        self._expert_LP: npt.NDArray[np.int64] | None = None
        self._score_L: npt.NDArray[np.float64] = np.empty(0)

    def offer(self, placement: Placement) -> None:
        score_L = self._score(placement)
        if self._expert_LP is None:
            self._expert_LP, self._score_L = placement.expert_LP.copy(), score_L.copy()
        better_L = score_L < self._score_L
        self._expert_LP[better_L], self._score_L[better_L] = placement.expert_LP[better_L], score_L[better_L]

    @property
    def placement(self) -> Placement:
        assert self._expert_LP is not None  # the portfolio is not empty
        return Placement(self._expert_LP, self._problem.model.placed_layer_ids, self._problem.gpus)
