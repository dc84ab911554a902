"""Levelling: swaps of two replicas under several loads at once, for the worst GPU of the worst load.

Shapes: D loads, L layers, E experts, P slots, G GPUs, S slots of the hot GPU, Q slots of K cold ones. Each
load's rows sum to 1, so that their peaks compare.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.packing import Ints, Loads

MOST_SWAPS = 150  # a layer; the first hundred bring nearly all there is
WORTH = 1e-3  # a swap lowers the hot GPU by this share at least
FEW = 8  # coldest GPUs tried first; the others where none of them serves


@dataclass(frozen=True, eq=False)
class Limits:
    """What a swap has to leave alone.

    `joined`: replicated experts stay where they are, so that the GPUs they join stay joined.
    """

    gpus: int
    speed_G: Loads | None = None  # load counts divided by it
    # Given where replicas are spread over nodes: a replicated expert stays on its node
    node_G: Ints | None = None
    joined: bool = False


def level(load_DLE: Loads, expert_LP: npt.NDArray[np.integer], limits: Limits) -> Ints:
    """expert_LP with the same replica counts, and in no layer a higher peak in the worst of the loads.

    Ties fall to the lower slot.
    """
    rows = enumerate(expert_LP.astype(np.int64))
    return np.array([_levelled(load_DLE[:, row], expert_P, limits) for row, expert_P in rows])


def _levelled(load_DE: Loads, expert_P: Ints, limits: Limits) -> Ints:
    gpus, slots = limits.gpus, len(expert_P)
    speed_G = np.ones(gpus) if limits.speed_G is None else limits.speed_G
    replicas_E = np.bincount(expert_P, minlength=load_DE.shape[1])
    value_DP = (load_DE / np.maximum(replicas_E, 1))[:, expert_P]
    total_DG = value_DP.reshape(len(load_DE), gpus, -1).sum(axis=2)
    held_GE = np.zeros((gpus, len(replicas_E)), dtype=bool)
    held_GE[np.repeat(np.arange(gpus), slots // gpus), expert_P] = True
    state = _State(expert_P, value_DP, total_DG, held_GE, replicas_E > 1)
    for _ in range(MOST_SWAPS):
        busy_DG = total_DG / speed_G
        load, hot = divmod(int(busy_DG.argmax()), gpus)
        cold_G = np.argsort(busy_DG[load], kind="stable")[:-1] if gpus > 1 else np.empty(0, dtype=np.int64)
        goal = busy_DG[load, hot] * (1 - WORTH)
        parts = [some_G for some_G in (cold_G[:FEW], cold_G[FEW:]) if len(some_G)]
        if not any(_swap(state, hot, some_G, goal, speed_G, limits) for some_G in parts):
            break
    return expert_P


@dataclass(frozen=True, eq=False)
class _State:
    """What swaps change, in place."""

    expert_P: Ints
    value_DP: Loads
    total_DG: Loads
    held_GE: npt.NDArray[np.bool_]
    several_E: npt.NDArray[np.bool_]  # experts with more than one replica


def _swap(state: _State, hot: int, cold_K: Ints, goal: float, speed_G: Loads, limits: Limits) -> bool:
    """Swap with the cold GPU that leaves the lowest peak of the two in any load, if below the goal."""
    size = len(state.expert_P) // limits.gpus
    slot_S = np.arange(hot * size, (hot + 1) * size)
    slot_Q = (cold_K[:, None] * size + np.arange(size)).ravel()
    gpu_Q = np.repeat(cold_K, size)
    change_DSQ = state.value_DP[:, None, slot_Q] - state.value_DP[:, slot_S, None]
    here_DSQ = (state.total_DG[:, hot, None, None] + change_DSQ) / speed_G[hot]
    there_DSQ = (state.total_DG[:, None, gpu_Q] - change_DSQ) / speed_G[gpu_Q]
    peak_SQ = np.maximum(here_DSQ, there_DSQ, out=here_DSQ).max(axis=0)
    peak_SQ[~_allowed_SQ(state, hot, slot_S, slot_Q, gpu_Q, limits)] = np.inf
    best = int(peak_SQ.argmin())
    if not peak_SQ.flat[best] < goal:
        return False
    _exchange(state, int(slot_S[best // len(slot_Q)]), int(slot_Q[best % len(slot_Q)]), size)
    return True


def _exchange(state: _State, one: int, other: int, size: int) -> None:
    """Change the state in place, for two slots of GPUs with `size` slots."""
    here, there = one // size, other // size
    change_D = state.value_DP[:, other] - state.value_DP[:, one]
    state.total_DG[:, here] += change_D
    state.total_DG[:, there] -= change_D
    for array in (state.expert_P, state.value_DP):
        array[..., [one, other]] = array[..., [other, one]]
    came, went = state.expert_P[one], state.expert_P[other]
    state.held_GE[here, [came, went]] = True, False
    state.held_GE[there, [came, went]] = False, True


def _allowed_SQ(
    state: _State, hot: int, slot_S: Ints, slot_Q: Ints, gpu_Q: Ints, limits: Limits
) -> npt.NDArray[np.bool_]:
    """Whether the two slots may swap: no expert twice on a GPU, and what the limits say."""
    mine_S, theirs_Q = state.expert_P[slot_S], state.expert_P[slot_Q]
    allowed_SQ: npt.NDArray[np.bool_] = ~state.held_GE[gpu_Q][:, mine_S].T & ~state.held_GE[hot, theirs_Q]
    both_single_SQ: npt.NDArray[np.bool_] = ~(state.several_E[mine_S][:, None] | state.several_E[theirs_Q])
    if limits.joined:
        allowed_SQ &= both_single_SQ
    elif limits.node_G is not None:
        allowed_SQ &= both_single_SQ | (limits.node_G[gpu_Q] == limits.node_G[hot])
    return allowed_SQ
