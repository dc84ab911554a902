"""Dispersal: swaps that spread the partners of a GPU, so that a lost one's load falls on many.

Packing puts copies of equal weight side by side, and two GPUs that share one expert soon share all: lose one,
and the other carries twice its load. Swaps that only make the hot GPU lighter beforehand were tried too: 3 %
less after a loss for 15 times the work (docs/log.md), so they are left out.

Shapes: L layers, E experts, P slots, G GPUs, X places that fail as a whole, C candidate slots.
"""

import numpy as np

from planner.solvers.kernels.after_loss import Flags, State, largest_touched_C, state_of, swap
from planner.solvers.kernels.packing import Ints, Loads
from planner.solvers.registry import Progress

SLACK = 5e-3  # of the peak that a swap may cost while nothing is lost
CLOSE_ENOUGH = 1.01  # times what a loss must cost at least
SOURCES = 3  # slots tried on either side of the worst pair, heaviest first
CANDIDATES = 48  # slots tried for each, nearest in weight first
STEPS_A_SLOT = 2  # swaps a layer
# Of after-loss tables that may be looked through: seconds; large machines get fewer swaps
MOST_CELLS = 2_000_000_000


def disperse(
    load_LE: Loads,
    expert_LP: Ints,
    place_G: Ints,
    node_G: Ints | None = None,
    progress: Progress | None = None,
) -> Ints:
    """expert_LP with no layer's worst GPU after the loss of a place higher.

    Nor is a peak before the loss higher by more than SLACK. With `node_G` experts stay on their nodes. Every
    expert must have slots at two places. Nothing is drawn; ties go to the lower slot.
    """
    dispersed_LP = expert_LP.copy()
    gpus, places = len(place_G), int(place_G.max()) + 1
    affordable = MOST_CELLS // (len(load_LE) * places * gpus)
    for layer, (load_E, expert_P) in enumerate(zip(load_LE, dispersed_LP, strict=True)):
        if progress is not None:
            progress(layer / len(load_LE), "dispersal")
        state = state_of(load_E, expert_P, place_G, places)
        limit, least = float(state.total_G.max()) * (1 + SLACK), _least(state)
        for _ in range(min(STEPS_A_SLOT * len(expert_P), affordable)):
            if state.after_XG.max() <= least or not _step(state, limit, node_G):
                break
    return dispersed_LP


def _least(state: State) -> float:
    """What a loss costs at least, about: all load on the GPUs left, or a lost copy's load on its others."""
    gpus_left = len(state.place_G) - int(np.bincount(state.place_G).min())
    even = float(state.total_G.sum()) / gpus_left
    heaviest = float((state.load_E / np.maximum(state.held_XE.sum(axis=0) - 1, 1)).max())
    return max(even, heaviest) * CLOSE_ENOUGH


def _step(state: State, limit: float, node_G: Ints | None) -> bool:
    """The first swap found that takes an expert off the worst pair, of place and GPU.

    It leaves every load it touches lower than theirs.
    """
    place, hot = np.unravel_index(int(state.after_XG.argmax()), state.after_XG.shape)
    worst = float(state.after_XG[place, hot])
    slots, expert_P = state.slots, state.expert_P
    shared_S = np.flatnonzero(state.held_XE[place, expert_P[hot * slots : (hot + 1) * slots]]) + hot * slots
    shared_S = shared_S[np.argsort(-state.load_E[expert_P[shared_S]], kind="stable")][:SOURCES]
    there = np.flatnonzero((np.repeat(state.place_G, slots) == place) & np.isin(expert_P, expert_P[shared_S]))
    for source in [*shared_S.tolist(), *there.tolist()]:
        target = _target(state, source, worst, limit, node_G)
        if target is not None:
            swap(state, source, target)
            return True
    return False


def _target(state: State, source: int, worst: float, limit: float, node_G: Ints | None) -> int | None:
    """The slot to swap with that leaves the lowest load touched, below `worst`; None where there is none."""
    value_P = (state.load_E / state.held_XE.sum(axis=0))[state.expert_P]
    change_P = value_P - value_P[source]
    target_C = np.flatnonzero(_allowed_P(state, source, change_P, limit, node_G))
    if not len(target_C):
        return None
    target_C = target_C[np.argsort(np.abs(change_P[target_C]), kind="stable")][:CANDIDATES]
    touched_C = largest_touched_C(state, source, target_C)
    best = int(touched_C.argmin())
    return int(target_C[best]) if touched_C[best] < worst * (1 - 1e-9) else None


def _allowed_P(state: State, source: int, change_P: Loads, limit: float, node_G: Ints | None) -> Flags:
    """No expert twice on a GPU, no GPU above the limit before a loss, and no other node where they matter."""
    gpu_P = np.arange(len(state.expert_P)) // state.slots
    hot, expert = int(gpu_P[source]), int(state.expert_P[source])
    here_G = (state.expert_P.reshape(len(state.place_G), -1) == expert).any(axis=1)
    on_hot_E = np.zeros(len(state.load_E), dtype=bool)
    on_hot_E[state.expert_P[hot * state.slots : (hot + 1) * state.slots]] = True
    allowed_P: Flags = (
        ~here_G[gpu_P]
        & ~on_hot_E[state.expert_P]
        & (state.total_G[hot] + change_P <= limit)
        & (state.total_G[gpu_P] - change_P <= limit)
    )
    if node_G is not None:
        allowed_P &= (node_G == node_G[hot])[gpu_P]
    return allowed_P
