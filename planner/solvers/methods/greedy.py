"""`greedy`: replicas for the hottest experts, then replicas to GPUs, largest first.

Milliseconds, and the start of the better methods.
"""

from planner.placement import Placement
from planner.problem import Problem
from planner.solvers.kernels.arrays import packed, placement_of
from planner.solvers.registry import Progress


def solve(
    problem: Problem, *, seed: int = 0, budget_seconds: float | None = None, progress: Progress | None = None
) -> Placement:
    """No count of replicas, within the limits, has a smaller largest replica.

    Nothing is drawn: every seed gives the same placement.
    """
    del seed, budget_seconds, progress
    return placement_of(problem, packed(problem))
