"""From a Problem to what the kernels take, and back; and the two answers that methods start from."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from planner.placement import Placement
from planner.problem import Problem
from planner.solvers.kernels.moves import move_replicas
from planner.solvers.kernels.packing import has_even_nodes, in_order, pack, replicate
from planner.solvers.kernels.protect import on_two_nodes
from planner.solvers.kernels.swaps import balance


@dataclass(frozen=True, eq=False)
class Solved:
    """A placement, and per layer a bound on the busiest GPU's share of the layer's load.

    The bound holds under even split for every placement, or, where replicas spread over nodes, for every one
    that spreads so.
    """

    placement: Placement
    bound_L: npt.NDArray[np.float64]
    stopped: str = ""  # where Ctrl-C cut the search short: what is to be said of that


def spread_nodes(problem: Problem) -> npt.NDArray[np.int64] | None:
    """node_G where replicas of an expert belong on distinct nodes.

    None where they do not, or where nodes of unequal size make that impossible.
    """
    wanted = problem.spreads_over_nodes or (problem.survive is not None and problem.survive.node)
    return problem.node_G if wanted and has_even_nodes(problem.node_G) else None


def replica_limit(problem: Problem) -> int:
    """The most replicas of an expert: one a GPU, or one a node where they spread and that fills the slots.

    A second replica on a node serves only its own GPU under the nearest rule, so more than one a node comes
    only where slots must be filled.
    """
    node_G = spread_nodes(problem)
    if node_G is None or not problem.spreads_over_nodes:
        return problem.gpus
    return max(int(node_G.max()) + 1, -(-problem.slots // problem.model.experts))


def packed(problem: Problem, most_replicas: int | None = None) -> npt.NDArray[np.int64]:
    """expert_LP of replicas by water-filling, packed largest first.

    Up to the usual limit of replicas, or another.
    """
    most, least = most_replicas or replica_limit(problem), problem.least_replicas
    replicas_LE = replicate(problem.shares_LE, problem.slots, most, least_per_expert=least)
    return pack(problem.shares_LE, replicas_LE, problem.gpus, spread_nodes(problem), speed_G=problem.speed_G)


def refined(
    problem: Problem, more: Callable[[float], bool], most_replicas: int | None = None
) -> npt.NDArray[np.int64]:
    """expert_LP after swaps and replica moves.

    `more(share done)` is asked before each move whether to go on.
    """
    load_LE, gpus, node_G, speed_G = problem.shares_LE, problem.gpus, spread_nodes(problem), problem.speed_G
    swapped_LP = balance(load_LE, packed(problem, most_replicas), gpus, node_G=node_G, speed_G=speed_G)
    return move_replicas(
        load_LE,
        swapped_LP,
        gpus,
        most_replicas or replica_limit(problem),
        least_per_expert=problem.least_replicas,
        node_G=node_G,
        speed_G=speed_G,
        more=more,
    )


@lru_cache(maxsize=1)
def refined_fully(problem: Problem) -> npt.NDArray[np.int64]:
    """The rows of `refined` without a limit; kept, for one method after the other starts from them."""
    expert_LP = refined(problem, lambda _: True)
    expert_LP.flags.writeable = False
    return expert_LP


def protected(problem: Problem, expert_LP: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """The rows, changed where the loss of a node would take an expert with it.

    Needs two slots for every expert. What spreads over nodes of equal size survives already; unequal nodes,
    and layouts that never look at nodes, need the repair.
    """
    if problem.survive is None or not problem.survive.node:
        return expert_LP.astype(np.int64)
    return on_two_nodes(problem.shares_LE, expert_LP, problem.node_G)


def placement_of(problem: Problem, expert_LP: npt.NDArray[np.integer]) -> Placement:
    """A Placement with the experts of each GPU in order of id, that survives what the problem asks."""
    ordered_LP = in_order(protected(problem, expert_LP), problem.gpus)
    return Placement(ordered_LP, problem.model.placed_layer_ids, problem.gpus)
