"""Relabelling: which GPU gets which content of a new placement, so that most experts stay where they are.

Each layer is free to choose on its own.

Shapes: L layers, G GPUs, E experts, N nodes.
"""

import numpy as np
import numpy.typing as npt

from planner.placement import Placement
from planner.problem import Problem

Ints = npt.NDArray[np.int64]
# Transports that cost the same whichever GPU of equal ones is meant, where replicas share evenly
INDIFFERENT = ("slot", "allgather")
# GPUs: beyond, nodes are renamed as wholes here too, for an assignment of all takes a third of a second a
# layer at 1,024
LARGEST_AT_ONCE = 256
NEVER = 1 << 20  # cost of a pair that must not be


def relabelled(problem: Problem, old: Placement, new: Placement) -> Placement:
    """`new` with its GPUs renamed, layer by layer: no layer keeps fewer experts on their GPU than before.

    Ties go to the present names. Where nodes matter (a rule that prefers near replicas, messages a node),
    nodes are renamed as wholes, then GPUs within them. A node, and a GPU, takes only the place of one of the
    same size and model.
    """
    kind_G = np.unique([gpu.model.name for gpu in problem.topology.gpus], return_inverse=True)[1]
    node_G = problem.node_G if _whole_nodes(problem) else np.zeros(problem.gpus, dtype=np.int64)
    expert_LGS = new.expert_LP.reshape(len(new.expert_LP), problem.gpus, -1)
    rows = []
    for before_P, after_GS in zip(old.expert_LP, expert_LGS, strict=True):
        held_old_GE = _held(before_P.reshape(problem.gpus, -1), problem.model.experts)
        held_new_GE = _held(after_GS, problem.model.experts)
        content_G = _renamed(held_old_GE, held_new_GE, node_G, kind_G)
        kept = (held_old_GE * held_new_GE[content_G]).sum() > (held_old_GE * held_new_GE).sum()
        rows.append(after_GS[content_G if kept else np.arange(problem.gpus)].ravel())
    return Placement(np.array(rows), new.layer_ids, new.gpus)


def _whole_nodes(problem: Problem) -> bool:
    even = problem.replica_rule == "even" and problem.workload.transport in INDIFFERENT
    indifferent = even and problem.gpus <= LARGEST_AT_ONCE
    return problem.topology.node_count > 1 and not indifferent


def _renamed(held_old_GE: Ints, held_new_GE: Ints, node_G: Ints, kind_G: Ints) -> Ints:
    """content_G: whose new content each GPU gets."""
    nodes = int(node_G.max()) + 1
    members = [np.flatnonzero(node_G == node) for node in range(nodes)]
    on_old_NE = np.array([held_old_GE[gpus].sum(axis=0) for gpus in members])
    on_new_NE = np.array([held_new_GE[gpus].sum(axis=0) for gpus in members])
    shared_NN = np.array([np.minimum(on_old_E, on_new_NE).sum(axis=1) for on_old_E in on_old_NE])
    kinds = [kind_G[gpus].tolist() for gpus in members]
    alike_NN = np.array([[one == other for other in kinds] for one in kinds])
    content_G = np.empty(len(node_G), dtype=np.int64)
    for node, other in enumerate(_assignment(shared_NN, alike_NN).tolist()):
        places, contents = members[node], members[other]
        shared_GG = held_old_GE[places] @ held_new_GE[contents].T
        content_G[places] = contents[_assignment(shared_GG, kind_G[places, None] == kind_G[None, contents])]
    return content_G


def _assignment(worth_XX: Ints, allowed_XX: npt.NDArray[np.bool_]) -> Ints:
    """The column of each row: the permutation of most worth among allowed pairs.

    Staying is worth a little more, so that ties stay.
    """
    size = len(worth_XX)
    if size == 1:
        return np.zeros(1, dtype=np.int64)
    # That part carries no annotations
    from ortools.graph.python import linear_sum_assignment  # type: ignore[import-untyped]

    cost_XX = np.where(allowed_XX, -worth_XX * (size + 1) - np.eye(size, dtype=np.int64), NEVER * (size + 1))
    row_A, column_A = np.divmod(np.arange(size * size), size)
    found = linear_sum_assignment.SimpleLinearSumAssignment()
    found.add_arcs_with_cost(row_A, column_A, cost_XX.ravel())
    assert found.solve() == found.OPTIMAL  # staying is always allowed
    return np.array([found.right_mate(row) for row in range(size)])


def _held(expert_GS: Ints, experts: int) -> Ints:
    held_GE = np.zeros((len(expert_GS), experts), dtype=np.int64)
    held_GE[np.arange(len(expert_GS))[:, None], expert_GS] = 1
    return held_GE
