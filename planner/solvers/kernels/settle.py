"""Settling: swaps that leave every replica choice as it is, so that a rule's own draw balances too.

A placement found in a rule's expectation is balanced under the rule itself. The engine's choice for an expert
depends on which nodes hold its replicas and in which order. So an expert with one slot may go anywhere, and
one whose replica is alone on its node may go to another GPU there: no draw of SGLang's table changes, and
what each slot gets is known beforehand.

Shapes: L layers, P slots, G GPUs, S slots a GPU.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.placement import Placement
from planner.problem import Problem
from planner.replica import find_rule
from planner.solvers.kernels.packing import Ints, Loads, in_order

MOST_SWAPS = 2000  # a layer; dozens are usual
WORTH = 1e-9


def settle(problem: Problem, placement: Placement) -> Placement:
    """No layer's busiest GPU (its load over its speed) is higher under the problem's own rule.

    Nothing is drawn; ties go to the lower slot. Nodes must be whole runs of ranks, as a topology's are: else
    the order of replicas would change with a move within a node.
    """
    expert_LP = placement.expert_LP.copy()
    rule = find_rule(problem.replica_rule)
    speed_G = np.ones(problem.gpus) if problem.speed_G is None else problem.speed_G
    for row, share_SP in enumerate(rule(placement, problem.situation())):
        expert_P = expert_LP[row]
        value_P = problem.shares_LE[row][expert_P] * share_SP.mean(axis=0)
        expert_LP[row] = expert_P[_settled_order(value_P, _freedom(expert_P, problem), speed_G)]
    return Placement(in_order(expert_LP, problem.gpus), placement.layer_ids, placement.gpus)


@dataclass(frozen=True, eq=False)
class _Freedom:
    """Where what a slot holds may go."""

    anywhere_P: npt.NDArray[np.bool_]
    within_node_P: npt.NDArray[np.bool_]
    node_P: Ints


def _freedom(expert_P: Ints, problem: Problem) -> _Freedom:
    node_P = np.repeat(problem.node_G, problem.slots_per_gpu)
    experts = problem.model.experts
    cell_P = node_P * experts + expert_P
    return _Freedom(
        np.bincount(expert_P, minlength=experts)[expert_P] == 1, np.bincount(cell_P)[cell_P] == 1, node_P
    )


def _settled_order(value_P: Loads, freedom: _Freedom, speed_G: Loads) -> Ints:
    """order_P: whose expert each slot holds after swaps between the busiest GPU and the others."""
    gpus, order_P = len(speed_G), np.arange(len(value_P))
    gpu_P = np.repeat(np.arange(gpus), len(value_P) // gpus)
    for _ in range(MOST_SWAPS):
        held_P = value_P[order_P]
        total_G = held_P.reshape(gpus, -1).sum(axis=1)
        hot = int((total_G / speed_G).argmax())
        slot_S = np.flatnonzero(gpu_P == hot)
        change_SP = held_P[None, :] - held_P[slot_S, None]
        peak_SP = np.maximum(
            (total_G[hot] + change_SP) / speed_G[hot], (total_G[gpu_P] - change_SP) / speed_G[gpu_P]
        )
        peak_SP[~_allowed_SP(freedom, order_P, slot_S) | (gpu_P == hot)] = np.inf
        best = int(peak_SP.argmin())
        if not peak_SP.flat[best] < total_G[hot] / speed_G[hot] * (1 - WORTH):
            break
        one, other = slot_S[best // len(value_P)], best % len(value_P)
        order_P[[one, other]] = order_P[[other, one]]
    return order_P


def _allowed_SP(freedom: _Freedom, order_P: Ints, slot_S: Ints) -> npt.NDArray[np.bool_]:
    """Whether each slot of the busiest GPU and each other one may swap what they hold."""
    anywhere_P, within_P = freedom.anywhere_P[order_P], freedom.within_node_P[order_P]
    same_node_SP = freedom.node_P[slot_S, None] == freedom.node_P[None, :]
    allowed_SP: npt.NDArray[np.bool_] = (anywhere_P[slot_S, None] & anywhere_P) | (
        same_node_SP & within_P[slot_S, None] & within_P
    )
    return allowed_SP
