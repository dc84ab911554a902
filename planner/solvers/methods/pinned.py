"""`pinned`: every group of experts stays on one node, so a token limited to few groups reaches few nodes.

For models that route by groups. Which groups share a node is decided exactly where the choices are few, else
largest first; inside a node it goes on as in `greedy`, with swaps. Without groups, or where they do not
divide over nodes of equal size, the answer is that of `refine`.
Shapes: L layers, N nodes, U groups, V groups a node, E experts.
"""

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from planner.placement import Placement
from planner.problem import Problem
from planner.solvers.kernels.arrays import placement_of, refined
from planner.solvers.kernels.packing import Ints, Loads, has_even_nodes, pack, replicate
from planner.solvers.kernels.swaps import balance
from planner.solvers.registry import Progress

MOST_DIVISIONS = 20_000  # of groups over nodes that are all looked at: 8 groups on 4 nodes are 105


def solve(
    problem: Problem, *, seed: int = 0, budget_seconds: float | None = None, progress: Progress | None = None
) -> Placement:
    """Nothing is drawn: every seed gives the same placement."""
    del seed, budget_seconds, progress
    if not can_pin(problem):
        return placement_of(problem, refined(problem, lambda _: True))
    return placement_of(problem, _pinned(problem))


def candidates(
    problem: Problem, *, seed: int = 0, budget_seconds: float | None = None, progress: Progress | None = None
) -> Iterator[Placement]:
    """The placement of `solve`, where groups can be pinned.

    Else nothing, for `refine` is a candidate already.
    """
    if can_pin(problem):
        yield solve(problem, seed=seed, budget_seconds=budget_seconds, progress=progress)


def can_pin(problem: Problem) -> bool:
    """Whether the groups divide over nodes of equal size, and no loss is to be survived.

    A node's slots must be able to differ from GPU to GPU.
    """
    groups, nodes = problem.model.expert_groups, problem.topology.node_count
    if (
        problem.survive is not None
        or groups < 2
        or nodes < 2
        or groups % nodes
        or problem.model.experts % groups
        or not has_even_nodes(problem.node_G)
    ):
        return False
    experts_a_node, gpus_a_node = problem.model.experts // nodes, problem.gpus // nodes
    return experts_a_node <= problem.slots // nodes <= experts_a_node * gpus_a_node


def _pinned(problem: Problem) -> Ints:
    groups, nodes = problem.model.expert_groups, problem.topology.node_count
    layers, experts = problem.shares_LE.shape
    expert_UX = np.arange(experts).reshape(groups, -1)
    group_LNV = _divided(problem.shares_LE.reshape(layers, groups, -1).sum(axis=2), nodes)
    expert_RX = expert_UX[group_LNV].reshape(layers * nodes, -1)  # a node of a layer is a row of its own
    load_RX = np.take_along_axis(np.repeat(problem.shares_LE, nodes, axis=0), expert_RX, axis=1)
    gpus = problem.gpus // nodes
    packed_RP = pack(load_RX, replicate(load_RX, problem.slots // nodes, gpus), gpus)
    seated_RP = np.take_along_axis(expert_RX, balance(load_RX, packed_RP, gpus), axis=1)
    by_node_LGS = seated_RP.reshape(layers, problem.gpus, -1)
    expert_LGS = np.empty_like(by_node_LGS)
    expert_LGS[:, np.argsort(problem.node_G, kind="stable")] = by_node_LGS
    return expert_LGS.reshape(layers, -1)


def _divided(load_LU: Loads, nodes: int) -> Ints:
    """group_LNV: which groups each node takes, so that the busiest node has least."""
    each = load_LU.shape[1] // nodes
    divisions = _divisions(tuple(range(load_LU.shape[1])), each, MOST_DIVISIONS)
    if divisions is not None:
        group_DNV = np.array(divisions)
        return np.stack([group_DNV[load_U[group_DNV].sum(axis=2).max(axis=1).argmin()] for load_U in load_LU])
    dealt_LVN = pack(load_LU, np.ones(load_LU.shape, dtype=np.int64), nodes)
    return np.sort(balance(load_LU, dealt_LVN, nodes).reshape(len(load_LU), nodes, each), axis=2)


def _divisions(groups: tuple[int, ...], each: int, most: int) -> list[list[tuple[int, ...]]] | None:
    """All ways to divide the groups into nodes that take `each`; None where there are more than `most`.

    Whatever node is which.

    >>> len(_divisions(tuple(range(8)), 2, 1000))
    105
    """
    if not groups:
        return [[]]
    found: list[list[tuple[int, ...]]] = []
    for others in combinations(groups[1:], each - 1):
        rest = _divisions(tuple(group for group in groups[1:] if group not in others), each, most)
        if rest is None or len(found) + len(rest) > most:
            return None
        found += [[(groups[0], *others), *division] for division in rest]
    return found
