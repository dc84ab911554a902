"""The field of a step: what both kinds of step, gifts and swaps, look at, and how a step is scored.

Shapes: R layers at work, E experts, G GPUs, S slots a GPU, N nodes; X hottest GPUs with H = X · S slots.
"""

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.drift import LARGEST_EXPONENT, State
from planner.solvers.kernels.packing import Ints, Loads

FREE = 0.2  # what a step without a move counts as, in moves
LEAST_GAIN = 1e-4  # of the sum of exponentials; a smaller gain is no step

Flags = npt.NDArray[np.bool_]
Moves = npt.NDArray[np.int8]  # slots that a step brings away from where the search began: -2 to 2


class Field:
    """The exponentials of GPU loads and of replicas, and the slots of the hottest GPUs."""

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

    def score_RX(self, change: Loads, moves: Moves, barred: Flags) -> Loads:
        """Change of the sum of exponentials per move, [R, all the rest].

        It is 0 for what is barred or gains too little.
        """
        share = np.array([1 / FREE, 1 / FREE, 1 / FREE, 1.0, 0.5])[moves.astype(np.intp) + 2]
        score = change * share
        score[barred | ~(change < -self.least_R.reshape(-1, *[1] * (change.ndim - 1)))] = 0.0
        score_RX: Loads = score.reshape(len(change), -1)
        return score_RX


def on_nodes_RNE(held_RGE: Flags, node_G: Ints) -> Ints:
    """How many GPUs of each node hold the expert."""
    nodes = range(int(node_G.max()) + 1)
    counts_RNE: Ints = np.stack([held_RGE[:, node_G == node].sum(axis=1) for node in nodes], axis=1)
    return counts_RNE


def as_moves(flags: Flags) -> Moves:
    return flags.astype(np.int8)
