"""Gifts: a slot whose expert can spare a replica goes to an expert of one of the hottest GPUs.

Shapes: R layers at work, E experts, G GPUs, S slots a GPU, P slots, N nodes; X hottest GPUs with H = X · S
slots, each holding a wanted expert; A slots whose expert has a replica to spare.
"""

from dataclasses import dataclass

import numpy as np

from planner.solvers.kernels.drift import State
from planner.solvers.kernels.field import Field, Flags, Moves, as_moves, on_nodes_RNE
from planner.solvers.kernels.packing import Ints, Loads

# Of what a slot's old expert loses in variance, its new one must win at least this share: else counts wear
# off plan by plan
LEAST_VARIANCE = 0.8


@dataclass(frozen=True, eq=False)
class _Offers:
    """Slots that may change their expert, the least missed first, and what the hottest GPUs hold."""

    slot_RA: Ints
    spare_RA: Ints  # the expert of such a slot
    gpu_RA: Ints
    wanted_RH: Ints
    held_RGE: Flags


def best_gifts(state: State, rows: Ints, field: Field, givers: int) -> tuple[Loads, Ints, Ints]:
    """Per layer the best change of one slot's expert to one of the hottest GPUs' experts.

    Score (0 where there is none), slot, expert.
    """
    offers = _offers(state, rows, field, givers)
    change_RAH, moves_RAH = _change_RAH(offers, field), _moves_RAH(state, rows, offers, field)
    score_RX = field.score_RX(change_RAH, moves_RAH, _barred_RAH(state, rows, offers, field))
    at_R, best_R = np.arange(len(rows)), score_RX.argmin(axis=1)
    giver_R, wanted_R = np.divmod(best_R, offers.wanted_RH.shape[1])
    return score_RX[at_R, best_R], offers.slot_RA[at_R, giver_R], offers.wanted_RH[at_R, wanted_R]


def _offers(state: State, rows: Ints, field: Field, givers: int) -> _Offers:
    expert_RP = state.expert_LP[rows]
    missed_RE = np.where(state.replicas_LE[rows] > 1, field.rise_RE, np.inf)
    missed_RP = np.take_along_axis(missed_RE, expert_RP, axis=1)
    slot_RA = np.argsort(missed_RP, axis=1, kind="stable")[:, :givers]
    spare_RA = np.take_along_axis(expert_RP, slot_RA, axis=1)
    wanted_RH = np.take_along_axis(expert_RP, field.hot_slot_RH, axis=1)
    return _Offers(slot_RA, spare_RA, state.gpu_P[slot_RA], wanted_RH, state.held_LGE[rows])


def _change_RAH(offers: _Offers, field: Field) -> Loads:
    """What each gift does to the sum of exponentials."""
    spare_RA, wanted_RH, held_RGE = offers.spare_RA, offers.wanted_RH, offers.held_RGE
    rise_RA = np.take_along_axis(field.rise_RE, spare_RA, axis=1)
    fall_RH = np.take_along_axis(field.fall_RE, wanted_RH, axis=1)
    weight_RA = np.take_along_axis(field.weight_RG, offers.gpu_RA, axis=1)
    holder_RAG = held_RGE[field.row_R1, :, spare_RA] * field.weight_RG[:, None, :]
    holder_RHG = held_RGE[field.row_R1, :, wanted_RH]
    both_RAH = holder_RAG @ holder_RHG.transpose(0, 2, 1).astype(np.float64)
    left_RA = (holder_RAG.sum(axis=2) - weight_RA) * rise_RA
    eased_RH = (holder_RHG * field.weight_RG[:, None, :]).sum(axis=2) * fall_RH
    newcomer_RH = np.take_along_axis(field.newcomer_RE, wanted_RH, axis=1)
    leaver_RA = np.take_along_axis(field.replica_RE, spare_RA, axis=1)
    ratio_RAH = newcomer_RH[:, None, :] / leaver_RA[:, :, None]
    return np.asarray(
        left_RA[:, :, None]
        + eased_RH[:, None, :]
        + both_RAH * rise_RA[:, :, None] * fall_RH[:, None, :]
        + weight_RA[:, :, None] * (ratio_RAH - 1)
    )


def _moves_RAH(state: State, rows: Ints, offers: _Offers, field: Field) -> Moves:
    before_RGE = state.before_LGE[rows]
    leaves_RA = as_moves(before_RGE[field.row_R1, offers.gpu_RA, offers.spare_RA])
    return leaves_RA[:, :, None] - as_moves(before_RGE[_at_RAH(offers, offers.gpu_RA, field)])


def _barred_RAH(state: State, rows: Ints, offers: _Offers, field: Field) -> Flags:
    """No expert twice on a GPU (or a node), none without a slot, no gift that evens out too little."""
    counts_RE, squares_RE = state.replicas_LE[rows], state.load_LE[rows] ** 2
    last_RA = np.take_along_axis(counts_RE, offers.spare_RA, axis=1) < 2
    barred_RAH: Flags = offers.held_RGE[_at_RAH(offers, offers.gpu_RA, field)] | last_RA[:, :, None]
    if state.node_G is not None:
        held_RNE = on_nodes_RNE(offers.held_RGE, state.node_G)
        barred_RAH |= held_RNE[_at_RAH(offers, state.node_G[offers.gpu_RA], field)] > 0
    gain_RE = squares_RE / (counts_RE * (counts_RE + 1))
    loss_RE = squares_RE / np.maximum(counts_RE * (counts_RE - 1), 1)
    won_RH = np.take_along_axis(gain_RE, offers.wanted_RH, axis=1)
    lost_RA = np.take_along_axis(loss_RE, offers.spare_RA, axis=1)
    barred_RAH |= won_RH[:, None, :] < LEAST_VARIANCE * lost_RA[:, :, None]
    return barred_RAH


def _at_RAH(offers: _Offers, where_RA: Ints, field: Field) -> tuple[Ints, Ints, Ints]:
    """Positions in a table of layers, GPUs or nodes, and experts: the wanted expert where a slot gives."""
    return field.row_R1[:, :, None], where_RA[:, :, None], offers.wanted_RH[:, None, :]
