"""`refine`: greedy, then swaps between hot and cold GPUs, then replica moves in layers above 0.1 %."""

import time

from planner.placement import Placement
from planner.problem import Problem
from planner.solvers.kernels.arrays import placement_of, refined, refined_fully
from planner.solvers.registry import Progress


def solve(
    problem: Problem, *, seed: int = 0, budget_seconds: float | None = None, progress: Progress | None = None
) -> Placement:
    """Busiest GPU of every layer no higher than `greedy`'s, where replicas share evenly.

    Nothing is drawn: every seed gives the same placement. `budget_seconds` is a wall-clock limit on the
    moves: an answer that it cut short is not reproducible.
    """
    del seed
    if budget_seconds is None and progress is None:
        return placement_of(problem, refined_fully(problem))
    stop = None if budget_seconds is None else time.monotonic() + budget_seconds

    def more(done: float) -> bool:
        if progress is not None:
            progress(done, "replica moves")
        return stop is None or time.monotonic() < stop

    return placement_of(problem, refined(problem, more))
