"""`auto`: the portfolio. Every layer gets the row that serves it best, of all that the methods offer.

Two placements are held at a time.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.placement import Placement
from planner.problem import Problem
from planner.solvers.best import BestRows, Score
from planner.solvers.kernels.arrays import Solved, placement_of, refined, replica_limit
from planner.solvers.kernels.packing import peaks
from planner.solvers.methods import cpsat
from planner.solvers.registry import Progress, find_candidates

# A tie goes to the earlier, and to them before CP-SAT
PORTFOLIO = ("linear", "greedy", "refine", "pinned", "remote", "affinity")
ALWAYS = 2  # candidates that take milliseconds
# Experts x GPUs: beyond, CP-SAT takes its time and finds next to nothing that swaps did not
LARGEST_FOR_CPSAT = 20_000
DETERMINISTIC_SECONDS = 3.0  # for CP-SAT where no time was offered


def solve(problem: Problem, **settings: Any) -> Placement:
    """The placement of `solve_with_bounds`, which takes the same settings."""
    return solve_with_bounds(problem, **settings).placement


def solve_with_bounds(
    problem: Problem,
    *,
    seed: int = 0,
    budget_seconds: float | None = None,
    progress: Progress | None = None,
    score: Score | None = None,
) -> Solved:
    """No layer scores worse than any candidate that was tried.

    `score` is the load of the busiest GPU under even split where none is given. Small layers also go to
    CP-SAT, for a proof; larger ones only within a budget. `budget_seconds` is a wall-clock limit: candidates
    that it leaves no time for are left out, so an answer that it cut short is not reproducible. Ctrl-C gives
    the best so far, once there is one.
    """
    stop = None if budget_seconds is None else time.monotonic() + budget_seconds
    best = BestRows(score or partial(_peaks_L, problem))
    bound_L = np.zeros(len(problem.model.placed_layer_ids))
    try:
        for placement in _candidates(problem, seed, stop, progress):
            best.offer(placement)
        left = None if stop is None else stop - time.monotonic()
        if _worth_cpsat(problem, left):
            effort = DETERMINISTIC_SECONDS if left is None else cpsat.TOTAL_DETERMINISTIC_SECONDS
            settings: dict[str, Any] = {"seed": seed, "budget_seconds": left, "progress": progress}
            proven = cpsat.solve_with_bounds(problem, **settings, deterministic_seconds=effort)
            best.offer(proven.placement)
            bound_L = proven.bound_L
    except KeyboardInterrupt:
        if best.offers == 0:
            raise
        return Solved(best.placement, bound_L, stopped=f"after {best.offers} candidates")
    return Solved(best.placement, bound_L)


def _peaks_L(problem: Problem, placement: Placement) -> npt.NDArray[np.float64]:
    return peaks(problem.shares_LE, placement.expert_LP, problem.gpus)


def _candidates(
    problem: Problem, seed: int, stop: float | None, progress: Progress | None
) -> Iterator[Placement]:
    """What the methods of the portfolio offer, one after the other until the time is up.

    The first ones whatever the time.
    """
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
    # One replica a node is not enough for an expert that takes most of a layer
    if replica_limit(problem) < problem.gpus:
        expert_LP = refined(problem, lambda _: stop is None or time.monotonic() < stop, problem.gpus)
        yield placement_of(problem, expert_LP)


def _worth_cpsat(problem: Problem, left_seconds: float | None) -> bool:
    cells = problem.model.experts * problem.gpus
    if left_seconds is None:
        return cells <= cpsat.SMALL_CELLS
    return left_seconds > 0 and cells <= LARGEST_FOR_CPSAT
