"""Every placement of one layer, up to exchanging GPUs that nothing tells apart.

For questions so small that all can be tried.

Shapes: N placements, G GPUs, S slots a GPU, P = G · S.
"""

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from planner.cost import Floats, compute_seconds_G
from planner.problem import Problem
from planner.topology import Topology

Ints = npt.NDArray[np.int64]

ALIKE = ("even", "lp")  # rules that know no order of GPUs at all
BY_NODE = ("even", "lp", "nearest")  # rules that know none of nodes


def every_placement(problem: Problem, most: int) -> Ints | None:
    """rows_NP, at least one of each set of placements that cost the same by symmetry.

    None where there are more than `most`. A GPU's experts are in order of id. Of equal GPUs of a node, and of
    equal nodes, only one order is given.
    """
    if comb(problem.model.experts, problem.slots_per_gpu) > most:
        return None
    held = list(combinations(range(problem.model.experts), problem.slots_per_gpu))
    rows: list[list[int]] = []
    for chosen in _choices(problem, [frozenset(experts) for experts in held]):
        if len(rows) == most:
            return None
        rows.append([expert for choice in chosen for expert in held[choice]])
    return np.array(rows, dtype=np.int64)


def _choices(problem: Problem, held: list[frozenset[int]]) -> Iterator[list[int]]:
    """For each GPU an index into `held`, so that all experts are covered.

    Depth first, in lexicographic order.
    """
    gpus, slots = problem.gpus, problem.slots_per_gpu
    same_gpu_G, same_node_G = equal_neighbours(problem)
    chosen: list[int] = []
    uncovered = [frozenset(range(problem.model.experts))]
    following = [0]
    while following:
        choice = following[-1]
        if choice == len(held):
            following.pop()
            if chosen:
                chosen.pop()
                uncovered.pop()
            continue
        following[-1] += 1
        left = uncovered[-1] - held[choice]
        if len(left) > slots * (gpus - len(chosen) - 1):
            continue
        if len(chosen) == gpus - 1:
            yield [*chosen, choice]
            continue
        chosen.append(choice)
        uncovered.append(left)
        following.append(_least(chosen, same_gpu_G, same_node_G))


def _least(chosen: list[int], same_gpu_G: list[bool], same_node_G: list[int]) -> int:
    """The next GPU holds no less than its equal before it.

    The first GPU of a node no less than that of its equal node before.
    """
    gpu = len(chosen)
    if same_gpu_G[gpu]:
        return chosen[gpu - 1]
    return chosen[gpu - same_node_G[gpu]] if same_node_G[gpu] else 0


def equal_neighbours(problem: Problem) -> tuple[list[bool], list[int]]:
    """Whether each GPU may change places with the one before it.

    And, for the first GPU of a node, the size of the node before where the nodes may.
    """
    gpus, node_G = problem.gpus, problem.node_G
    same_gpu_G, same_node_G = [False] * gpus, [0] * gpus
    starts = np.flatnonzero(np.diff(node_G, prepend=-1)).tolist()
    sizes = np.bincount(node_G).tolist()
    # The other transports pair GPUs by their position on a node
    if problem.replica_rule in ALIKE and problem.workload.transport in ("slot", "rank"):
        for gpu in set(range(gpus)) - set(starts):
            same_gpu_G[gpu] = _unchanged(problem, [*range(gpu - 1), gpu, gpu - 1, *range(gpu + 1, gpus)])
    if problem.replica_rule in BY_NODE:
        for before, start, size in zip(starts, starts[1:], sizes[1:], strict=False):
            this, rest = range(start, start + size), range(start + size, gpus)
            order = [*range(before), *this, *range(before, start), *rest]
            if start - before == size and _unchanged(problem, order):
                same_node_G[start] = size
    return same_gpu_G, same_node_G


def _unchanged(problem: Problem, order: list[int]) -> bool:
    """Whether the GPUs in this order make the same machine.

    Equally fast, and, for two traffic matrices without pattern, with the same loads of links.
    """
    gpus = problem.gpus
    for load, touched in ((1e6, 0.0), (0.0, 1e6)):
        seconds_G = compute_seconds_G(problem, np.full(gpus, load), np.full(gpus, touched))
        if (seconds_G[order] != seconds_G).any():
            return False
    drawn = np.random.default_rng(0)
    return all(_same_links(problem.topology, drawn.random((gpus, gpus)), order) for _ in range(2))


def _same_links(topology: Topology, bytes_GG: Floats, order: list[int]) -> bool:
    """Whether this traffic loads the links of each tier the same with the GPUs in this order."""
    tier_R = np.unique([resource.tier for resource in topology.resources], return_inverse=True)[1]

    def ordered(traffic_GG: Floats) -> Floats:
        load_R = topology.resource_bytes(traffic_GG) / topology.capacity_R
        return np.asarray(load_R[np.lexsort((load_R, tier_R))])

    after_R = ordered(bytes_GG[np.ix_(order, order)])
    return np.allclose(ordered(bytes_GG), after_R, rtol=1e-12, atol=0.0)
