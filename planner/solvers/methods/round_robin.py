"""`round-robin`: expert e on GPU e mod G, vLLM's other layout. A baseline that never looks at the load."""

import math

import numpy as np

from planner.placement import Placement
from planner.problem import Problem
from planner.solvers.kernels.arrays import protected
from planner.solvers.registry import Progress


def solve(
    problem: Problem, *, seed: int = 0, budget_seconds: float | None = None, progress: Progress | None = None
) -> Placement:
    """Experts dealt over GPUs in turn, redundant ones by going on from the first.

    VLLM has no redundant experts in this layout. A GPU would meet its own experts again after E / gcd(E, G)
    turns, so the deal shifts by one GPU then: no expert twice on a GPU.
    """
    del seed, budget_seconds, progress
    experts, gpus = problem.model.experts, problem.gpus
    turn_S, gpu_G1 = np.arange(problem.slots_per_gpu), np.arange(gpus)[:, None]
    expert_GS = (turn_S * gpus + gpu_G1 + turn_S // (experts // math.gcd(experts, gpus))) % experts
    layer_ids = problem.model.placed_layer_ids
    expert_LP = protected(problem, np.tile(expert_GS.reshape(1, -1), (len(layer_ids), 1)))
    return Placement(expert_LP, layer_ids, problem.gpus)
