"""`linear`: expert p mod E in slot p, what vLLM and SGLang start with. A baseline that ignores the load."""

import numpy as np

from planner.placement import Placement
from planner.problem import Problem
from planner.solvers.kernels.arrays import protected
from planner.solvers.registry import Progress


def solve(
    problem: Problem, *, seed: int = 0, budget_seconds: float | None = None, progress: Progress | None = None
) -> Placement:
    """Slots of one GPU are consecutive and never more than the experts, so no expert meets itself.

    Slots keep the engines' order. Copies of an expert are as many for each, give or take one; swaps bring
    them to two nodes where the problem asks to survive the loss of one.
    """
    del seed, budget_seconds, progress
    expert_P = np.arange(problem.slots) % problem.model.experts
    expert_LP = protected(problem, np.tile(expert_P, (len(problem.model.placed_layer_ids), 1)))
    return Placement(expert_LP, problem.model.placed_layer_ids, problem.gpus)
