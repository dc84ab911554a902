"""Settling: swaps that leave every replica choice as it is, so that a rule's own draw balances too.

A placement found in a rule's expectation is balanced under the rule itself. The engine's choice for an expert
depends on which nodes hold its replicas and in which order. So an expert with one slot may go anywhere, and
one whose replica is alone on its node may go to another GPU there: no draw of SGLang's table changes, and
what each slot gets is known beforehand. It is balanced under several loads at once, for the worst GPU of the
worst of them.

Shapes: W loads, L layers, P slots, G GPUs, S slots a GPU.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem
from planner.replica import FOLLOW_LOAD, find_rule
from planner.solvers.kernels.packing import Ints, Loads, in_order

MOST_SWAPS = 150  # a layer; dozens are usual
WORTH = 1e-3  # a swap lowers the hot GPU by this share at least


def settle(problem: Problem, placement: Placement, loads: Sequence[LoadProfile] = ()) -> Placement:
    """In no layer the busiest GPU (its load over its speed) of the worst of the loads is higher under the
    problem's own rule.

    The problem's load where none is given. Nothing is drawn; ties go to the lower slot. Nodes must be whole
    runs of ranks, as a topology's are: else the order of replicas would change with a move within a node.
    """
    expert_LP = placement.expert_LP.copy()
    speed_G = np.ones(problem.gpus) if problem.speed_G is None else problem.speed_G
    for row, value_WP in enumerate(_values_LWP(problem, placement, loads or (problem.load,))):
        expert_P = expert_LP[row]
        expert_LP[row] = expert_P[_settled_order(value_WP, _freedom(expert_P, problem), speed_G)]
    return Placement(in_order(expert_LP, problem.gpus), placement.layer_ids, placement.gpus)


def _values_LWP(problem: Problem, placement: Placement, loads: Sequence[LoadProfile]) -> Iterator[Loads]:
    """What each slot gets of each load, a layer after the other."""
    rule, follows = find_rule(problem.replica_rule), problem.replica_rule in FOLLOW_LOAD
    asked = loads if follows else loads[:1]
    shares_LW = zip(*(rule(placement, problem.situation(load)) for load in asked), strict=True)
    for row, share_WSP in enumerate(shares_LW):
        share_WP = np.array([share_SP.mean(axis=0) for share_SP in share_WSP])
        expert_P = placement.expert_LP[row]
        yield np.array([load.shares_LE[row][expert_P] for load in loads]) * share_WP


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


def _settled_order(value_WP: Loads, freedom: _Freedom, speed_G: Loads) -> Ints:
    """order_P: whose expert each slot holds after swaps between the busiest GPU and the others."""
    gpus, slots = len(speed_G), value_WP.shape[1]
    order_P, gpu_P = np.arange(slots), np.repeat(np.arange(gpus), slots // gpus)
    for _ in range(MOST_SWAPS):
        held_WP = value_WP[:, order_P]
        total_WG = held_WP.reshape(len(held_WP), gpus, -1).sum(axis=2)
        load, hot = divmod(int((total_WG / speed_G).argmax()), gpus)
        slot_S = np.flatnonzero(gpu_P == hot)
        change_WSP = held_WP[:, None, :] - held_WP[:, slot_S, None]
        here_WSP = (total_WG[:, hot, None, None] + change_WSP) / speed_G[hot]
        there_WSP = (total_WG[:, None, gpu_P] - change_WSP) / speed_G[gpu_P]
        peak_SP = np.maximum(here_WSP, there_WSP, out=here_WSP).max(axis=0)
        peak_SP[~_allowed_SP(freedom, order_P, slot_S) | (gpu_P == hot)] = np.inf
        best = int(peak_SP.argmin())
        if not peak_SP.flat[best] < total_WG[load, hot] / speed_G[hot] * (1 - WORTH):
            break
        one, other = slot_S[best // slots], best % slots
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
