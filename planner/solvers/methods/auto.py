"""`auto`: the portfolio. Every layer gets the row that serves it best, of all that the methods offer; two placements are held at a time."""

import time
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from planner.placement import Placement
from planner.problem import Problem
from planner.solvers.kernels.arrays import Solved, placement_of, refined, replica_limit
from planner.solvers.kernels.packing import peaks
from planner.solvers.methods import cpsat
from planner.solvers.registry import Progress, find_candidates

PORTFOLIO = (
    "linear",
    "greedy",
    "refine",
    "pinned",
    "remote",
    "affinity",
)  # a tie goes to the earlier, and to them before CP-SAT
ALWAYS = 2  # candidates that take milliseconds
LARGEST_FOR_CPSAT = (
    20_000  # experts x GPUs: beyond, CP-SAT takes its time and finds next to nothing that swaps did not
)
DETERMINISTIC_SECONDS = 3.0  # for CP-SAT where no time was offered

Score = Callable[[Placement], npt.NDArray[np.float64]]  # one number a layer, lower is better


def solve(
    problem: Problem,
    *,
    seed: int = 0,
    budget_seconds: float | None = None,
    progress: Progress | None = None,
    score: Score | None = None,
) -> Placement:
    """The placement of `solve_with_bounds`."""
    return solve_with_bounds(
        problem, seed=seed, budget_seconds=budget_seconds, progress=progress, score=score
    ).placement


def solve_with_bounds(
    problem: Problem,
    *,
    seed: int = 0,
    budget_seconds: float | None = None,
    progress: Progress | None = None,
    score: Score | None = None,
) -> Solved:
    """No layer scores worse than any candidate that was tried. `score` is the load of the busiest GPU under even split where none is given.

    Small layers also go to CP-SAT, for a proof; larger ones only within a budget. `budget_seconds` is a wall-clock limit: candidates that it leaves no
    time for are left out, so an answer that it cut short is not reproducible. Ctrl-C gives the best so far, once there is one.
    """
    stop = None if budget_seconds is None else time.monotonic() + budget_seconds
    best = _Best(
        problem, score or (lambda placement: peaks(problem.shares_LE, placement.expert_LP, problem.gpus))
    )
    try:
        for placement in _candidates(problem, seed, stop, progress):
            best.offer(placement)
        left = None if stop is None else stop - time.monotonic()
        if not _worth_cpsat(problem, left):
            return Solved(best.placement, np.zeros(len(problem.model.placed_layer_ids)))
        effort = DETERMINISTIC_SECONDS if left is None else cpsat.TOTAL_DETERMINISTIC_SECONDS
        proven = cpsat.solve_with_bounds(
            problem, seed=seed, budget_seconds=left, progress=progress, deterministic_seconds=effort
        )
        best.offer(proven.placement)
    except KeyboardInterrupt:
        if best.offers == 0:
            raise
        return Solved(
            best.placement,
            np.zeros(len(problem.model.placed_layer_ids)),
            stopped=f"after {best.offers} candidates",
        )
    return Solved(best.placement, proven.bound_L)


def _candidates(
    problem: Problem, seed: int, stop: float | None, progress: Progress | None
) -> Iterator[Placement]:
    """What the methods of the portfolio offer, one after the other until the time is up; the first ones whatever the time."""
    offered = 0
    for done, name in enumerate(PORTFOLIO):
        if progress is not None:
            progress(done / (len(PORTFOLIO) + 1), name)
        left = None if stop is None else max(stop - time.monotonic(), 0.0)
        for placement in find_candidates(name)(problem, seed=seed, budget_seconds=left):
            yield placement
            offered += 1
            if stop is not None and offered >= ALWAYS and time.monotonic() >= stop:
                return
    if (
        replica_limit(problem) < problem.gpus
    ):  # one replica a node is not enough for an expert that takes most of a layer
        yield placement_of(
            problem, refined(problem, lambda _: stop is None or time.monotonic() < stop, problem.gpus)
        )


def _worth_cpsat(problem: Problem, left_seconds: float | None) -> bool:
    cells = problem.model.experts * problem.gpus
    return (
        cells <= cpsat.SMALL_CELLS
        if left_seconds is None
        else left_seconds > 0 and cells <= LARGEST_FOR_CPSAT
    )


class _Best:
    """The best row of every layer among the placements offered."""

    def __init__(self, problem: Problem, score: Score) -> None:
        self._problem, self._score = problem, score
        self._expert_LP: npt.NDArray[np.int64] | None = None
        self._score_L: npt.NDArray[np.float64] = np.empty(0)
        self.offers = 0

    def offer(self, placement: Placement) -> None:
        score_L = self._score(placement)
        if self._expert_LP is None:
            self._expert_LP, self._score_L = placement.expert_LP.copy(), score_L.copy()
        better_L = score_L < self._score_L
        self._expert_LP[better_L], self._score_L[better_L] = placement.expert_LP[better_L], score_L[better_L]
        self.offers += 1

    @property
    def placement(self) -> Placement:
        assert self._expert_LP is not None  # the portfolio is not empty
        return Placement(self._expert_LP, self._problem.model.placed_layer_ids, self._problem.gpus)
