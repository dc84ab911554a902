"""`sparse`: for decode steps so small that many experts see no token.

A replica of a cold expert is seldom touched, so its weights are seldom read.

A hot expert's replicas are all touched, and each is one more set of weights to read: where a step waits for
weights, replicas that slots must be filled with belong to the coldest experts, and GPUs are balanced by the
slots that a step touches.

Shapes: L layers, E experts, P slots.
"""

import numpy as np
import numpy.typing as npt

from planner.cost import inclusion_E
from planner.placement import Placement
from planner.problem import Problem
from planner.solvers.kernels.arrays import placement_of, spread_nodes
from planner.solvers.kernels.level import Limits, level
from planner.solvers.kernels.packing import Ints, Loads, pack
from planner.solvers.registry import Progress

# Of the experts touched in a step: replicas of cold ones then spare no weights worth the load they leave on
# hot ones
OFTEN = 0.95


def solve(
    problem: Problem, *, seed: int = 0, budget_seconds: float | None = None, progress: Progress | None = None
) -> Placement:
    """Replicas of the coldest experts, packed by load, then swaps that even out touched slots.

    Nothing is drawn: every seed gives the same placement.
    """
    del seed, budget_seconds, progress
    layers, experts = problem.shares_LE.shape
    replicas_LE = np.full((layers, experts), 1 + problem.redundant // experts, dtype=np.int64)
    coldest_LX = np.argsort(problem.shares_LE, axis=1, kind="stable")[:, : problem.redundant % experts]
    np.put_along_axis(replicas_LE, coldest_LX, replicas_LE[0, 0] + 1, axis=1)
    node_G = spread_nodes(problem)
    packed_LP = pack(problem.shares_LE, replicas_LE, problem.gpus, node_G, speed_G=problem.speed_G)
    touched_LE = _touched_LE(problem, replicas_LE)
    touched_LE /= touched_LE.sum(axis=1, keepdims=True)
    limits = Limits(problem.gpus, problem.speed_G, node_G)
    return placement_of(problem, level(touched_LE[None], packed_LP, limits))


def few_touched_L(problem: Problem) -> npt.NDArray[np.bool_]:
    """The layers in which a step is so small that where replicas sit decides how many weights are read."""
    one_LE = np.ones(problem.shares_LE.shape, dtype=np.int64)
    return np.asarray(_touched_LE(problem, one_LE).mean(axis=1) < OFTEN)


def _touched_LE(problem: Problem, replicas_LE: Ints) -> Loads:
    """Expected touched slots of each expert, its tokens dealt evenly over its replicas."""
    included_LE = np.array([inclusion_E(share_E, problem.model.top_k) for share_E in problem.shares_LE])
    chance_LE, tokens = included_LE / replicas_LE, problem.workload.tokens_per_rank * problem.gpus
    with np.errstate(divide="ignore"):  # an expert that every token chooses is never missed
        missed_LE = np.exp(tokens * np.log1p(-np.minimum(chance_LE, 1.0)))
    return np.asarray(replicas_LE * (1 - missed_LE))
