"""Swaps of a step: a slot of one of the hottest GPUs changes its expert with any other slot.

Tables are [R, X, S, G, S]: hottest GPU and its slot, other GPU and its slot. What depends on less is gathered
small and broadcast.

Shapes: R layers at work, E experts, G GPUs, S slots a GPU, P slots, N nodes; X hottest GPUs with H = X · S
slots.
"""

from dataclasses import dataclass

import numpy as np

from planner.solvers.kernels.drift import State
from planner.solvers.kernels.field import Field, Flags, Moves, as_moves, on_nodes_RNE
from planner.solvers.kernels.packing import Ints, Loads

Place = tuple[Ints, Ints, Ints]


@dataclass(frozen=True, eq=False)
class _Tables:
    """The experts of all slots and of the hottest GPUs' slots, and where a swap would bring them."""

    expert_RP: Ints
    own_RH: Ints
    comes: Place  # the other's expert on the hot GPU
    goes: Place  # the hot slot's expert on the other GPU
    whole: tuple[int, ...]
    coming: tuple[int, ...]
    going: tuple[int, ...]


def best_swaps(state: State, rows: Ints, field: Field) -> tuple[Loads, Ints, Ints]:
    """Per layer the best swap of a slot of a hottest GPU with any other slot.

    Score (0 where there is none) and the two slots.
    """
    tables = _tables(state, rows, field)
    change = _change_RHP(tables, field).reshape(tables.whole)
    moves, barred = _moves(state, rows, tables, field), _barred(state, rows, tables, field)
    score_RX = field.score_RX(change, moves, barred)
    at_R, best_R = np.arange(len(rows)), score_RX.argmin(axis=1)
    hot_R, other_R = np.divmod(best_R, tables.expert_RP.shape[1])
    return score_RX[at_R, best_R], field.hot_slot_RH[at_R, hot_R], other_R


def _tables(state: State, rows: Ints, field: Field) -> _Tables:
    layers, gpus, size = len(rows), state.gpus, state.expert_LP.shape[1] // state.gpus
    expert_RP = state.expert_LP[rows]
    own_RH = np.take_along_axis(expert_RP, field.hot_slot_RH, axis=1)
    row_R11 = field.row_R1[:, :, None]
    return _Tables(
        expert_RP,
        own_RH,
        comes=(row_R11, field.hot_RX[:, :, None], expert_RP[:, None, :]),
        goes=(row_R11, np.arange(gpus)[None, None, :], own_RH[:, :, None]),
        whole=(layers, -1, size, gpus, size),
        coming=(layers, -1, 1, gpus, size),
        going=(layers, -1, size, gpus, 1),
    )


def _change_RHP(tables: _Tables, field: Field) -> Loads:
    """What each swap does to the sum of exponentials; in place, for these tables are large."""
    size = tables.whole[-1]
    replica_RP = np.take_along_axis(field.replica_RE, tables.expert_RP, axis=1)
    replica_RH = np.take_along_axis(field.replica_RE, tables.own_RH, axis=1)
    change_RHP: Loads = replica_RP[:, None, :] / replica_RH[:, :, None]
    back_RHP = replica_RH[:, :, None] / replica_RP[:, None, :]
    hot_weight_RX = np.take_along_axis(field.weight_RG, field.hot_RX, axis=1)
    change_RHP -= 1
    change_RHP *= hot_weight_RX.repeat(size, axis=1)[:, :, None]
    back_RHP -= 1
    back_RHP *= np.repeat(field.weight_RG, size, axis=1)[:, None, :]
    change_RHP += back_RHP
    return change_RHP


def _moves(state: State, rows: Ints, tables: _Tables, field: Field) -> Moves:
    before_RGE, size = state.before_LGE[rows], tables.whole[-1]
    was_own_RH = as_moves(before_RGE[field.row_R1, field.hot_RX.repeat(size, axis=1), tables.own_RH])
    was_other_RP = as_moves(before_RGE[field.row_R1, state.gpu_P[None, :], tables.expert_RP])
    coming = (was_other_RP[:, None, :] - as_moves(before_RGE[tables.comes])).reshape(tables.coming)
    going = (was_own_RH[:, :, None] - as_moves(before_RGE[tables.goes])).reshape(tables.going)
    return np.asarray(coming + going)


def _barred(state: State, rows: Ints, tables: _Tables, field: Field) -> Flags:
    """No expert twice on a GPU, nor, where they spread, on another node that has it."""
    held_RGE = state.held_LGE[rows]
    coming, going = held_RGE[tables.comes].reshape(tables.coming), held_RGE[tables.goes].reshape(tables.going)
    barred: Flags = coming | going
    if state.node_G is not None:
        held_RNE, hot_node_RX = on_nodes_RNE(held_RGE, state.node_G), state.node_G[field.hot_RX]
        row_R11, _, expert_R1P = tables.comes
        own_RH1 = tables.goes[2]
        comes_RXP = held_RNE[row_R11, hot_node_RX[:, :, None], expert_R1P] > 0
        goes_RHG = held_RNE[row_R11, state.node_G[None, None, :], own_RH1] > 0
        crowds = comes_RXP.reshape(tables.coming) | goes_RHG.reshape(tables.going)
        barred |= crowds & (hot_node_RX[:, :, None, None, None] != state.node_G[None, None, None, :, None])
    return barred
