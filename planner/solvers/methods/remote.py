"""`remote`: where tokens prefer a replica on their own node, balance by what still comes from other nodes.

That is what a NIC waits for. Balancing all assignments leaves a GPU with rarely replicated experts most of
the traffic: its load comes from everywhere, that of a replicated expert from its own node. Shapes: L layers,
E experts, P slots, N nodes.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from planner.cost import cost
from planner.placement import Placement
from planner.problem import Problem
from planner.solvers.best import best_rows
from planner.solvers.kernels.arrays import packed, placement_of, replica_limit, spread_nodes
from planner.solvers.kernels.packing import Ints, Loads, pack, replicate
from planner.solvers.kernels.swaps import balance
from planner.solvers.registry import Progress

LOCAL_WEIGHTS = (0.0, 0.25, 1.0)  # of an assignment that stays on its node, beside one that crosses


def solve(
    problem: Problem, *, seed: int = 0, budget_seconds: float | None = None, progress: Progress | None = None
) -> Placement:
    """Each layer's fastest of greedy's row and the candidates'.

    Nothing is drawn: every seed gives the same placement.
    """
    greedy = placement_of(problem, packed(problem))
    if _preferred_nodes(problem) is None:
        return greedy
    offered = candidates(problem, seed=seed, budget_seconds=budget_seconds, progress=progress)
    return best_rows(greedy, offered, lambda placement: cost(problem, placement).layer_seconds_L)


def candidates(
    problem: Problem, *, seed: int = 0, budget_seconds: float | None = None, progress: Progress | None = None
) -> Iterator[Placement]:
    """Replicas where they save the most crossings, or the highest load; GPUs balanced with different weights.

    Nothing where no node is preferred. Nor where losses are to be survived: that asks for replicas of the
    coldest experts too.
    """
    del seed, budget_seconds
    node_G = _preferred_nodes(problem)
    if node_G is None:
        return
    nodes, load_LE = int(node_G.max()) + 1, problem.shares_LE
    cases = [(counts_LE, weight) for counts_LE in _counts(problem, nodes) for weight in LOCAL_WEIGHTS]
    for done, (replicas_LE, weight) in enumerate(cases):
        if progress is not None:
            progress(done / len(cases), f"local assignments weigh {weight:g}")
        crossing_LE = 1 - np.minimum(replicas_LE, nodes) / nodes
        weighed_LE = load_LE * (crossing_LE + weight * (1 - crossing_LE))
        felt_LE = weighed_LE + load_LE.max(axis=1, keepdims=True) * 1e-9
        packed_LP = pack(felt_LE, replicas_LE, problem.gpus, node_G)
        yield placement_of(problem, balance(felt_LE, packed_LP, problem.gpus, node_G=node_G))


def _preferred_nodes(problem: Problem) -> Ints | None:
    """node_G where a token prefers its own node; None elsewhere, and where losses are to be survived."""
    return None if problem.survive is not None else spread_nodes(problem)


def _counts(problem: Problem, nodes: int) -> list[Ints]:
    """Counts that keep most assignments on their node, and those with the lightest heaviest replica."""
    lightest_LE = replicate(problem.shares_LE, problem.slots, replica_limit(problem))
    if problem.redundant >= problem.model.experts * (nodes - 1):
        return [lightest_LE]
    return [everywhere(problem.shares_LE, problem.redundant, nodes), lightest_LE]


def everywhere(load_LE: Loads, extra: int, nodes: int) -> npt.NDArray[np.int64]:
    """replicas_LE with the hottest experts on every node.

    Each replica on another node saves the same part of its expert's assignments.

    >>> everywhere(np.array([[1.0, 9.0, 4.0]]), 3, 3).tolist()
    [[1, 3, 2]]
    """
    order_LE = np.argsort(-load_LE, axis=1, kind="stable")
    replicas_LE = np.empty(load_LE.shape, dtype=np.int64)
    given_E = np.clip(extra - (nodes - 1) * np.arange(load_LE.shape[1]), 0, nodes - 1)
    np.put_along_axis(replicas_LE, order_LE, 1 + given_E[None, :], axis=1)
    return replicas_LE
