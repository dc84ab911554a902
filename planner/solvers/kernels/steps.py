"""One step from a placement towards a better one, in many layers at once: give a slot to another expert, or swap two experts. Best gain per move first.

Both kinds are judged exactly: what a step does to the sum over GPUs of exp(sharpness · load), under even split (planner/solvers/kernels/drift.py says why that sum).

Shapes: R layers at work, E experts, G GPUs, S slots a GPU, P slots, N nodes; X hottest GPUs with H = X · S slots; A slots whose expert has one to spare.
"""

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.drift import LARGEST_EXPONENT, State, put
from planner.solvers.kernels.packing import Ints, Loads

HOTTEST = 4  # GPUs of a layer that a step may relieve
MOST_GIVERS = 128  # slots that may change their expert, those of the least missed replicas
LEAST_VARIANCE = 0.8  # of what a slot's old expert loses in variance, its new one must win at least this share: else counts wear off plan by plan
FREE = 0.2  # what a step without a move counts as, in moves
LEAST_GAIN = 1e-4  # of the sum of exponentials; a smaller gain is no step
LARGEST_TABLE = 4_000_000  # cells looked at together; bounds memory at about 200 MB


def step(state: State, rows: Ints) -> Ints:
    """The best step of each of these layers is taken; the layers that had one are returned."""
    spare_L = (np.take_along_axis(state.replicas_LE, state.expert_LP, axis=1) > 1).sum(axis=1)
    givers = min(MOST_GIVERS, max(int(spare_L.max()), 1))
    size = state.expert_LP.shape[1] // state.gpus
    hot = min(HOTTEST, state.gpus)
    cells = max(
        hot * size * state.expert_LP.shape[1],
        givers * (state.gpus + hot * size),
        state.gpus * state.load_LE.shape[1],
    )
    at_once = max(LARGEST_TABLE // cells, 1)
    stepped = []
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        field = _Field(state, some, hot)
        gain_gift_R, slot_R, expert_R = _best_gifts(state, some, field, givers)
        gain_swap_R, one_R, other_R = _best_swaps(state, some, field)
        for at, row in enumerate(some.tolist()):
            if min(gain_gift_R[at], gain_swap_R[at]) >= 0:
                continue
            stepped.append(row)
            if gain_gift_R[at] <= gain_swap_R[at]:
                put(state, row, int(slot_R[at]), int(expert_R[at]))
            else:
                one, other = int(one_R[at]), int(other_R[at])
                expert_one, expert_other = int(state.expert_LP[row, one]), int(state.expert_LP[row, other])
                put(state, row, one, expert_other)
                put(state, row, other, expert_one)
    return np.array(stepped, dtype=np.int64)


class _Field:
    """What both kinds of step look at: the exponentials of GPU loads and of replicas, and the slots of the hottest GPUs."""

    def __init__(self, state: State, rows: Ints, hot: int) -> None:
        sharpness_R1 = state.sharpness_L[rows, None]
        total_RG = state.totals_RG(rows)
        self.weight_RG = np.exp(sharpness_R1 * (total_RG - total_RG.max(axis=1, keepdims=True)))
        self.least_R = LEAST_GAIN * self.weight_RG.sum(axis=1)
        exponent_RE, fewer_RE, more_RE = (sharpness_R1 * state.values_RE(rows, more) for more in (0, -1, 1))
        self.replica_RE = np.exp(np.minimum(exponent_RE, LARGEST_EXPONENT))
        self.newcomer_RE = np.exp(np.minimum(more_RE, LARGEST_EXPONENT))
        self.rise_RE = np.expm1(np.minimum(fewer_RE - exponent_RE, LARGEST_EXPONENT))
        self.fall_RE = np.expm1(more_RE - exponent_RE)
        self.hot_RX = np.argsort(-total_RG, axis=1, kind="stable")[:, :hot]
        size = state.expert_LP.shape[1] // state.gpus
        self.hot_slot_RH = (self.hot_RX[:, :, None] * size + np.arange(size)).reshape(len(rows), -1)
        self.row_R1 = np.arange(len(rows))[:, None]


def _best_gifts(state: State, rows: Ints, field: _Field, givers: int) -> tuple[Loads, Ints, Ints]:
    """Per layer the best change of one slot's expert to one of the hottest GPUs' experts: score (0 where there is none), slot, expert."""
    row_R1, at_R = field.row_R1, np.arange(len(rows))
    expert_RP, held_RGE, before_RGE = state.expert_LP[rows], state.held_LGE[rows], state.before_LGE[rows]
    missed_RE = np.where(state.replicas_LE[rows] > 1, field.rise_RE, np.inf)
    slot_RA = np.argsort(np.take_along_axis(missed_RE, expert_RP, axis=1), axis=1, kind="stable")[:, :givers]
    spare_RA, gpu_RA = np.take_along_axis(expert_RP, slot_RA, axis=1), state.gpu_P[slot_RA]
    wanted_RH = np.take_along_axis(expert_RP, field.hot_slot_RH, axis=1)
    rise_RA, fall_RH = (
        np.take_along_axis(found, at, axis=1)
        for found, at in ((field.rise_RE, spare_RA), (field.fall_RE, wanted_RH))
    )
    weight_RA = np.take_along_axis(field.weight_RG, gpu_RA, axis=1)
    holder_RAG, holder_RHG = (
        held_RGE[row_R1, :, spare_RA] * field.weight_RG[:, None, :],
        held_RGE[row_R1, :, wanted_RH],
    )
    both_RAH = holder_RAG @ holder_RHG.transpose(0, 2, 1).astype(np.float64)
    left_RA = (holder_RAG.sum(axis=2) - weight_RA) * rise_RA
    eased_RH = (holder_RHG * field.weight_RG[:, None, :]).sum(axis=2) * fall_RH
    ratio_RAH = (
        np.take_along_axis(field.newcomer_RE, wanted_RH, axis=1)[:, None, :]
        / np.take_along_axis(field.replica_RE, spare_RA, axis=1)[:, :, None]
    )
    change_RAH = (
        left_RA[:, :, None]
        + eased_RH[:, None, :]
        + both_RAH * rise_RA[:, :, None] * fall_RH[:, None, :]
        + weight_RA[:, :, None] * (ratio_RAH - 1)
    )
    moves_RAH = _int(before_RGE[row_R1, gpu_RA, spare_RA])[:, :, None] - _int(
        before_RGE[row_R1[:, :, None], gpu_RA[:, :, None], wanted_RH[:, None, :]]
    )
    last_RA = np.take_along_axis(state.replicas_LE[rows], spare_RA, axis=1) < 2
    barred_RAH = held_RGE[row_R1[:, :, None], gpu_RA[:, :, None], wanted_RH[:, None, :]] | last_RA[:, :, None]
    if state.node_G is not None:
        barred_RAH |= (
            _held_LNE(held_RGE, state.node_G)[
                row_R1[:, :, None], state.node_G[gpu_RA][:, :, None], wanted_RH[:, None, :]
            ]
            > 0
        )
    counts_RE, squares_RE = state.replicas_LE[rows], state.load_LE[rows] ** 2
    won_RH = np.take_along_axis(squares_RE / (counts_RE * (counts_RE + 1)), wanted_RH, axis=1)
    lost_RA = np.take_along_axis(squares_RE / np.maximum(counts_RE * (counts_RE - 1), 1), spare_RA, axis=1)
    barred_RAH |= won_RH[:, None, :] < LEAST_VARIANCE * lost_RA[:, :, None]
    score_RX = _score(change_RAH, moves_RAH, barred_RAH, field)
    best_R = score_RX.argmin(axis=1)
    giver_R, wanted_R = np.divmod(best_R, wanted_RH.shape[1])
    return score_RX[at_R, best_R], slot_RA[at_R, giver_R], wanted_RH[at_R, wanted_R]


def _best_swaps(state: State, rows: Ints, field: _Field) -> tuple[Loads, Ints, Ints]:
    """Per layer the best swap of a slot of a hottest GPU with any other slot: score (0 where there is none) and the two slots.

    Tables are [R, X, S, G, S]: hottest GPU and its slot, other GPU and its slot. What depends on less is gathered small and broadcast.
    """
    layers, gpus, size = len(rows), state.gpus, state.expert_LP.shape[1] // state.gpus
    expert_RP, held_RGE, before_RGE = state.expert_LP[rows], state.held_LGE[rows], state.before_LGE[rows]
    hot_RX, own_RH = field.hot_RX, np.take_along_axis(expert_RP, field.hot_slot_RH, axis=1)
    here_R1X, here_R1G = np.arange(layers)[:, None, None], np.arange(layers)[:, None, None]
    comes = (here_R1X, hot_RX[:, :, None], expert_RP[:, None, :])  # the other's expert on the hot GPU
    goes = (
        here_R1G,
        np.arange(gpus)[None, None, :],
        own_RH[:, :, None],
    )  # the hot slot's expert on the other GPU
    whole, coming, going = (
        (layers, -1, size, gpus, size),
        (layers, -1, 1, gpus, size),
        (layers, -1, size, gpus, 1),
    )
    replica_RP, replica_RH = (
        np.take_along_axis(field.replica_RE, expert_RP, axis=1),
        np.take_along_axis(field.replica_RE, own_RH, axis=1),
    )
    change_RHP, back_RHP = (
        replica_RP[:, None, :] / replica_RH[:, :, None],
        replica_RH[:, :, None] / replica_RP[:, None, :],
    )
    change_RHP -= 1  # in place: these tables are large
    change_RHP *= np.take_along_axis(field.weight_RG, hot_RX, axis=1).repeat(size, axis=1)[:, :, None]
    back_RHP -= 1
    back_RHP *= np.repeat(field.weight_RG, size, axis=1)[:, None, :]
    change_RHP += back_RHP
    was_own_RH1 = _int(before_RGE[np.arange(layers)[:, None], hot_RX.repeat(size, axis=1), own_RH])[
        :, :, None
    ]
    was_other_RP = _int(before_RGE[np.arange(layers)[:, None], state.gpu_P[None, :], expert_RP])
    moves = (was_other_RP[:, None, :] - _int(before_RGE[comes])).reshape(coming) + (
        was_own_RH1 - _int(before_RGE[goes])
    ).reshape(going)
    barred = held_RGE[comes].reshape(coming) | held_RGE[goes].reshape(going)
    if state.node_G is not None:
        held_RNE, node_RX1 = _held_LNE(held_RGE, state.node_G), state.node_G[hot_RX][:, :, None]
        crowds = (held_RNE[here_R1X, node_RX1, expert_RP[:, None, :]] > 0).reshape(coming)
        crowds = crowds | (held_RNE[here_R1G, state.node_G[None, None, :], own_RH[:, :, None]] > 0).reshape(
            going
        )
        barred |= crowds & (
            state.node_G[hot_RX][:, :, None, None, None] != state.node_G[None, None, None, :, None]
        )
    score_RX = _score(change_RHP.reshape(whole), moves, barred, field)
    best_R = score_RX.argmin(axis=1)
    hot_R, other_R = np.divmod(best_R, expert_RP.shape[1])
    return score_RX[np.arange(layers), best_R], field.hot_slot_RH[np.arange(layers), hot_R], other_R


def _score(change: Loads, moves: npt.NDArray[np.int8], barred: npt.NDArray[np.bool_], field: _Field) -> Loads:
    """Change of the sum of exponentials per move, [R, all the rest]; 0 for what is barred or gains too little."""
    layers = len(change)
    share = np.array([1 / FREE, 1 / FREE, 1 / FREE, 1.0, 0.5])[moves.astype(np.intp) + 2]  # moves are -2 to 2
    score = change * share
    score[barred | ~(change < -field.least_R.reshape(-1, *[1] * (change.ndim - 1)))] = 0.0
    score_RX: Loads = score.reshape(layers, -1)
    return score_RX


def _held_LNE(held_LGE: npt.NDArray[np.bool_], node_G: Ints) -> Ints:
    """How many GPUs of each node hold the expert."""
    counts_LNE: Ints = np.stack(
        [held_LGE[:, node_G == node].sum(axis=1) for node in range(int(node_G.max()) + 1)], axis=1
    )
    return counts_LNE


def _int(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.int8]:
    return flags.astype(np.int8)
