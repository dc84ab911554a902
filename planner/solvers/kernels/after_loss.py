"""After a loss: what each GPU carries once a place is lost, and what a swap of two slots would make of it.

Shapes: E experts, P slots, G GPUs, X places that fail as a whole, C candidate slots, M GPUs with a copy.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.packing import Ints, Loads, replica_values

Flags = npt.NDArray[np.bool_]


@dataclass
class State:
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


def state_of(load_E: Loads, expert_P: Ints, place_G: Ints, places: int) -> State:
    held_XE = np.zeros((places, len(load_E)), dtype=np.int64)
    np.add.at(held_XE, (np.repeat(place_G, len(expert_P) // len(place_G)), expert_P), 1)
    value_1P, _ = replica_values(load_E[None], expert_P[None])
    total_G = value_1P.reshape(len(place_G), -1).sum(axis=1)
    after_XG = _share_XE(load_E, held_XE)[:, expert_P].reshape(places, len(place_G), -1).sum(axis=2)
    after_XG[place_G, np.arange(len(place_G))] = -np.inf
    return State(load_E, expert_P, place_G, held_XE, total_G, after_XG)


def _share_XE(load_E: Loads, held_XE: Ints) -> Loads:
    """What one copy of each expert carries once each place is lost."""
    return np.asarray(load_E / np.maximum(held_XE.sum(axis=0) - held_XE, 1))


@dataclass(frozen=True, eq=False)
class _Trials:
    """Swaps of one slot with C others, and what a copy of either expert carries once each place is lost."""

    hot: int
    expert: int
    cold_C: Ints
    other_C: Ints
    old_X: Loads  # a copy of the slot's expert now
    gone_CX: Loads  # and after the swap
    old_CX: Loads  # a copy of the other expert now
    new_CX: Loads  # and after the swap
    alone_C: Flags  # an expert would be all at one place, and lost with it


def _trials(state: State, source: int, target_C: Ints) -> _Trials:
    hot, expert = source // state.slots, int(state.expert_P[source])
    cold_C, other_C = target_C // state.slots, state.expert_P[target_C]
    home, away_C, row_C = int(state.place_G[hot]), state.place_G[cold_C], np.arange(len(target_C))
    held_X, held_CX = state.held_XE[:, expert], state.held_XE[:, other_C].T.copy()
    given_CX = np.repeat(held_X[None], len(target_C), axis=0)
    count, count_C1 = int(held_X.sum()), state.held_XE[:, other_C].sum(axis=0)[:, None]
    load, load_C1 = state.load_E[expert], state.load_E[other_C][:, None]
    old_CX, old_X = load_C1 / np.maximum(count_C1 - held_CX, 1), load / np.maximum(count - held_X, 1)
    held_CX[row_C, away_C] -= 1
    held_CX[:, home] += 1
    given_CX[row_C, away_C] += 1
    given_CX[:, home] -= 1
    alone_C = (held_CX.max(axis=1) == count_C1[:, 0]) | (given_CX.max(axis=1) == count)
    new_CX, gone_CX = load_C1 / np.maximum(count_C1 - held_CX, 1), load / np.maximum(count - given_CX, 1)
    return _Trials(hot, expert, cold_C, other_C, old_X, gone_CX, old_CX, new_CX, alone_C)


def largest_touched_C(state: State, source: int, target_C: Ints) -> Loads:
    """The largest load after a loss among those that each swap may raise."""
    trials = _trials(state, source, target_C)
    hot_CX = state.after_XG[:, trials.hot] - trials.old_X + trials.new_CX
    cold_CX = state.after_XG[:, trials.cold_C].T - trials.old_CX + trials.gone_CX
    peak_C = np.maximum(hot_CX.max(axis=1), cold_CX.max(axis=1))
    peak_C = np.maximum(peak_C, np.maximum(_others_C(state, trials), _mates_C(state, trials)))
    return np.asarray(np.where(trials.alone_C, np.inf, peak_C))


def _others_C(state: State, trials: _Trials) -> Loads:
    """The target's expert elsewhere: its holders carry more once the slot's own place is lost."""
    home = int(state.place_G[trials.hot])
    holders_CG = np.zeros((len(trials.cold_C), len(state.place_G)), dtype=bool)
    for row, other in enumerate(trials.other_C.tolist()):
        holders_CG[row, np.flatnonzero(state.expert_P == other) // state.slots] = True
    holders_CG[np.arange(len(trials.cold_C)), trials.cold_C] = False
    more_C1 = (trials.new_CX[:, home] - trials.old_CX[:, home])[:, None]
    raised_CG = np.where(holders_CG, state.after_XG[home] + more_C1, -np.inf)
    return np.asarray(raised_CG.max(axis=1))


def _mates_C(state: State, trials: _Trials) -> Loads:
    """The slot's expert elsewhere: its holders carry more once the place that it came to is lost."""
    away_C, holders = state.place_G[trials.cold_C], np.flatnonzero(state.expert_P == trials.expert)
    mates = [gpu for gpu in (holders // state.slots).tolist() if gpu != trials.hot]
    more_C = trials.gone_CX[np.arange(len(away_C)), away_C] - trials.old_X[away_C]
    mates_CM = state.after_XG[away_C][:, mates] + more_C[:, None]
    return np.asarray(mates_CM.max(axis=1, initial=-np.inf))


def swap(state: State, source: int, target: int) -> None:
    """Change the state in place; what the experts of the two slots carry is taken out and put back."""
    experts = [int(state.expert_P[source]), int(state.expert_P[target])]
    _add(state, experts, -1)
    state.expert_P[[source, target]] = state.expert_P[[target, source]]
    for expert in experts:
        state.held_XE[:, expert] = 0
        held_by = np.flatnonzero(state.expert_P == expert) // state.slots
        np.add.at(state.held_XE[:, expert], state.place_G[held_by], 1)
    _add(state, experts, 1)


def _add(state: State, experts: list[int], sign: int) -> None:
    for expert in experts:
        gpus = np.flatnonzero(state.expert_P == expert) // state.slots
        held_X = state.held_XE[:, expert]
        state.total_G[gpus] += sign * state.load_E[expert] / len(gpus)
        state.after_XG[:, gpus] += sign * (state.load_E[expert] / np.maximum(len(gpus) - held_X, 1))[:, None]
