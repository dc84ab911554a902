"""Dispersal: swaps that spread the partners of a GPU, so that the load of a lost one does not all fall on the same other.

Packing puts copies of equal weight side by side, and two GPUs that share one expert soon share all: lose one, and the other carries twice its load.
Swaps that only make the hot GPU lighter beforehand were tried too: 3 % less after a loss for 15 times the work (docs/log.md), so they are left out.

Shapes: L layers, E experts, P slots, G GPUs, X places that fail as a whole, C candidate slots.
"""

from dataclasses import dataclass

import numpy as np

from planner.solvers.kernels.packing import Ints, Loads, replica_values
from planner.solvers.registry import Progress

SLACK = 5e-3  # of the peak that a swap may cost while nothing is lost
CLOSE_ENOUGH = 1.01  # times what a loss must cost at least
SOURCES = 3  # slots tried on either side of the worst pair, heaviest first
CANDIDATES = 48  # slots tried for each, nearest in weight first
STEPS_A_SLOT = 2  # swaps a layer
MOST_CELLS = (
    2_000_000_000  # of after-loss tables that may be looked through: seconds; large machines get fewer swaps
)


@dataclass
class _State:
    """One layer. after_XG[x, g]: load of GPU g once place x is lost; -inf on the place itself."""

    load_E: Loads
    expert_P: Ints
    place_G: Ints
    held_XE: Ints
    total_G: Loads
    after_XG: Loads

    @property
    def slots(self) -> int:
        return len(self.expert_P) // len(self.place_G)


def disperse(
    load_LE: Loads,
    expert_LP: Ints,
    place_G: Ints,
    node_G: Ints | None = None,
    progress: Progress | None = None,
) -> Ints:
    """expert_LP with no layer's worst GPU after the loss of a place higher, and no peak before it higher by more than SLACK.

    With `node_G` experts stay on their nodes. Every expert must have slots at two places. Nothing is drawn; ties go to the lower slot.
    """
    dispersed_LP = expert_LP.copy()
    gpus, places = len(place_G), int(place_G.max()) + 1
    for layer, (load_E, expert_P) in enumerate(zip(load_LE, dispersed_LP, strict=True)):
        if progress is not None:
            progress(layer / len(load_LE), "dispersal")
        state = _state(load_E, expert_P, place_G, places)
        limit = float(state.total_G.max()) * (1 + SLACK)
        left = float(state.total_G.sum()) / (gpus - np.bincount(place_G).min())
        least = (
            max(left, float((load_E / np.maximum(state.held_XE.sum(axis=0) - 1, 1)).max())) * CLOSE_ENOUGH
        )  # a lost copy's load goes to the others
        for _ in range(min(STEPS_A_SLOT * len(expert_P), MOST_CELLS // (len(load_LE) * places * gpus))):
            if state.after_XG.max() <= least or not _step(state, limit, node_G):
                break
    return dispersed_LP


def _state(load_E: Loads, expert_P: Ints, place_G: Ints, places: int) -> _State:
    held_XE = np.zeros((places, len(load_E)), dtype=np.int64)
    np.add.at(held_XE, (np.repeat(place_G, len(expert_P) // len(place_G)), expert_P), 1)
    value_1P, _ = replica_values(load_E[None], expert_P[None])
    total_G = value_1P.reshape(len(place_G), -1).sum(axis=1)
    after_XG = _share_XE(load_E, held_XE)[:, expert_P].reshape(places, len(place_G), -1).sum(axis=2)
    after_XG[place_G, np.arange(len(place_G))] = -np.inf
    return _State(load_E, expert_P, place_G, held_XE, total_G, after_XG)


def _share_XE(load_E: Loads, held_XE: Ints) -> Loads:
    """What one copy of each expert carries once each place is lost."""
    return np.asarray(load_E / np.maximum(held_XE.sum(axis=0) - held_XE, 1))


def _step(state: _State, limit: float, node_G: Ints | None) -> bool:
    """The first swap found that takes an expert off the worst pair, of place and GPU, and leaves every load it touches lower than theirs."""
    place, hot = np.unravel_index(int(state.after_XG.argmax()), state.after_XG.shape)
    worst = float(state.after_XG[place, hot])
    slots, expert_P = state.slots, state.expert_P
    shared_S = np.flatnonzero(state.held_XE[place, expert_P[hot * slots : (hot + 1) * slots]]) + hot * slots
    shared_S = shared_S[np.argsort(-state.load_E[expert_P[shared_S]], kind="stable")][:SOURCES]
    there = np.flatnonzero((np.repeat(state.place_G, slots) == place) & np.isin(expert_P, expert_P[shared_S]))
    for source in [*shared_S.tolist(), *there.tolist()]:
        target = _target(state, source, worst, limit, node_G)
        if target is not None:
            _swap(state, source, target)
            return True
    return False


def _target(state: _State, source: int, worst: float, limit: float, node_G: Ints | None) -> int | None:
    """The slot to swap with that leaves the lowest load touched, below `worst`; None where there is none."""
    gpu_P = np.arange(len(state.expert_P)) // state.slots
    hot, expert = int(gpu_P[source]), int(state.expert_P[source])
    counts_E = state.held_XE.sum(axis=0)
    value_P = (state.load_E / counts_E)[state.expert_P]
    change_P = value_P - value_P[source]
    here_G = (state.expert_P.reshape(len(state.place_G), -1) == expert).any(axis=1)
    on_hot_E = np.zeros(len(state.load_E), dtype=bool)
    on_hot_E[state.expert_P[hot * state.slots : (hot + 1) * state.slots]] = True
    allowed_P = (
        ~here_G[gpu_P]
        & ~on_hot_E[state.expert_P]
        & (state.total_G[hot] + change_P <= limit)
        & (state.total_G[gpu_P] - change_P <= limit)
    )
    if node_G is not None:
        allowed_P &= (node_G == node_G[hot])[gpu_P]
    target_C = np.flatnonzero(allowed_P)
    if not len(target_C):
        return None
    target_C = target_C[np.argsort(np.abs(change_P[target_C]), kind="stable")][:CANDIDATES]
    touched_C = _touched(state, source, target_C)
    best = int(touched_C.argmin())
    return int(target_C[best]) if touched_C[best] < worst * (1 - 1e-9) else None


def _touched(state: _State, source: int, target_C: Ints) -> Loads:
    """The largest load after a loss among those that each swap may raise."""
    hot, expert = source // state.slots, int(state.expert_P[source])
    cold_C, other_C = target_C // state.slots, state.expert_P[target_C]
    home, away_C = int(state.place_G[hot]), state.place_G[cold_C]
    row_C = np.arange(len(target_C))
    held_CX, given_CX = (
        state.held_XE[:, other_C].T.copy(),
        np.repeat(state.held_XE[None, :, expert], len(target_C), axis=0),
    )
    count_C1, count = state.held_XE[:, other_C].sum(axis=0)[:, None], int(state.held_XE[:, expert].sum())
    old_CX, old_X = (
        state.load_E[other_C][:, None] / np.maximum(count_C1 - held_CX, 1),
        state.load_E[expert] / np.maximum(count - state.held_XE[:, expert], 1),
    )
    held_CX[row_C, away_C] -= 1
    held_CX[:, home] += 1
    given_CX[row_C, away_C] += 1
    given_CX[:, home] -= 1
    alone_C = (held_CX.max(axis=1) == count_C1[:, 0]) | (
        given_CX.max(axis=1) == count
    )  # an expert all at one place would be lost with it
    new_CX, gone_CX = (
        state.load_E[other_C][:, None] / np.maximum(count_C1 - held_CX, 1),
        state.load_E[expert] / np.maximum(count - given_CX, 1),
    )
    hot_CX = state.after_XG[:, hot] - old_X + new_CX
    cold_CX = state.after_XG[:, cold_C].T - old_CX + gone_CX
    peak_C = np.maximum(hot_CX.max(axis=1), cold_CX.max(axis=1))
    holders_CG = np.zeros(
        (len(target_C), len(state.place_G)), dtype=bool
    )  # of the target's expert: they carry more once `home` is lost
    for row, other in enumerate(other_C.tolist()):
        holders_CG[row, np.flatnonzero(state.expert_P == other) // state.slots] = True
    holders_CG[row_C, cold_C] = False
    raised_CG = np.where(
        holders_CG, state.after_XG[home] + (new_CX[:, home] - old_CX[:, home])[:, None], -np.inf
    )
    mates = [gpu for gpu in (np.flatnonzero(state.expert_P == expert) // state.slots).tolist() if gpu != hot]
    more_C = gone_CX[row_C, away_C] - old_X[away_C]
    mates_CM = state.after_XG[away_C][:, mates] + more_C[:, None]
    peak_C = np.maximum(peak_C, np.maximum(raised_CG.max(axis=1), mates_CM.max(axis=1, initial=-np.inf)))
    return np.asarray(np.where(alone_C, np.inf, peak_C))


def _swap(state: _State, source: int, target: int) -> None:
    """Change the state in place; what the experts of the two slots carry is taken out and put back."""
    experts = [int(state.expert_P[source]), int(state.expert_P[target])]
    _add(state, experts, -1)
    state.expert_P[[source, target]] = state.expert_P[[target, source]]
    for expert in experts:
        state.held_XE[:, expert] = 0
        np.add.at(
            state.held_XE[:, expert],
            state.place_G[np.flatnonzero(state.expert_P == expert) // state.slots],
            1,
        )
    _add(state, experts, 1)


def _add(state: _State, experts: list[int], sign: int) -> None:
    for expert in experts:
        gpus = np.flatnonzero(state.expert_P == expert) // state.slots
        held_X = state.held_XE[:, expert]
        state.total_G[gpus] += sign * state.load_E[expert] / len(gpus)
        state.after_XG[:, gpus] += sign * (state.load_E[expert] / np.maximum(len(gpus) - held_X, 1))[:, None]
