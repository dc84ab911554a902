"""Levelling: swaps of two replicas under several loads at once, until the worst GPU of the worst load is as low as swaps take it.

Shapes: D loads, L layers, E experts, P slots, G GPUs, S slots of the GPU at hand. Each load's rows sum to 1, so that their peaks compare.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.solve.packing import Ints, Loads

MOST_SWAPS = 1000  # a layer; dozens are usual
WORTH = 1e-6


@dataclass(frozen=True, eq=False)
class Limits:
    """What a swap has to leave alone. `joined`: replicated experts stay where they are, so that the GPUs they join stay joined."""

    gpus: int
    speed_G: Loads | None = None  # load counts divided by it
    node_G: Ints | None = None  # given where replicas are spread over nodes: a replicated expert stays on its node
    joined: bool = False


def level(load_DLE: Loads, expert_LP: npt.NDArray[np.integer], limits: Limits) -> Ints:
    """expert_LP with the same replica counts, and in no layer a higher peak in the worst of the loads. Ties fall to the lower slot."""
    return np.array([_levelled(load_DLE[:, row], expert_P.astype(np.int64), limits) for row, expert_P in enumerate(expert_LP)])


def _levelled(load_DE: Loads, expert_P: Ints, limits: Limits) -> Ints:
    gpus, slots = limits.gpus, len(expert_P)
    gpu_P = np.repeat(np.arange(gpus), slots // gpus)
    speed_G = np.ones(gpus) if limits.speed_G is None else limits.speed_G
    replicas_E = np.bincount(expert_P, minlength=load_DE.shape[1])
    value_DE = load_DE / np.maximum(replicas_E, 1)
    for _ in range(MOST_SWAPS):
        value_DP = value_DE[:, expert_P]
        total_DG = value_DP.reshape(len(load_DE), gpus, -1).sum(axis=2)
        worst = float((total_DG / speed_G).max())
        hot = int((total_DG / speed_G).max(axis=0).argmax())
        slot_S = np.flatnonzero(gpu_P == hot)
        change_DSP = value_DP[:, None, :] - value_DP[:, slot_S, None]
        here_DSP = (total_DG[:, hot, None, None] + change_DSP) / speed_G[hot]
        there_DSP = (total_DG[:, None, gpu_P] - change_DSP) / speed_G[gpu_P]
        peak_SP = np.maximum(here_DSP, there_DSP).max(axis=0)
        peak_SP[~_allowed_SP(expert_P, replicas_E, gpu_P, slot_S, limits)] = np.inf
        best = int(peak_SP.argmin())
        if not peak_SP.flat[best] < worst * (1 - WORTH):
            break
        one, other = slot_S[best // slots], best % slots
        expert_P[[one, other]] = expert_P[[other, one]]
    return expert_P


def _allowed_SP(expert_P: Ints, replicas_E: Ints, gpu_P: Ints, slot_S: Ints, limits: Limits) -> npt.NDArray[np.bool_]:
    """Whether the slot of the hot GPU and the other one may swap: no expert twice on a GPU, and what the limits say."""
    held_GE = np.zeros((limits.gpus, len(replicas_E)), dtype=bool)
    held_GE[gpu_P, expert_P] = True
    hot = gpu_P[slot_S[0]]
    allowed_SP = ~held_GE[gpu_P][:, expert_P[slot_S]].T & ~held_GE[hot, expert_P]
    single_P = replicas_E[expert_P] == 1
    both_single_SP = single_P[slot_S, None] & single_P
    if limits.joined:
        return allowed_SP & both_single_SP
    if limits.node_G is None:
        return allowed_SP
    node_P = limits.node_G[gpu_P]
    return allowed_SP & (both_single_SP | (node_P[slot_S, None] == node_P))
