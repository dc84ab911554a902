"""Replica moves: slots from experts that can spare one to those that weigh heavily, where that helps.

After each move the layer is packed and balanced again; what is better is kept.

Shapes: L layers, E experts, P slots, G GPUs; T trials of a move, several a layer.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.goals import least_peaks
from planner.solvers.kernels.packing import Ints, Loads, pack, peaks, replica_values
from planner.solvers.kernels.swaps import balance

# The n-th heaviest receives, the m-th cheapest gives
CHOICES = np.array([(0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (2, 0), (1, 2), (2, 1), (2, 2)])
TRIALS = 3 * len(CHOICES)  # of a layer; it is also left when every choice failed in turn
# Trials packed together: what a layer would try next is tried early where few layers are left, as one call
# costs as much as many
AT_ONCE = 64
SWEEPS = 40  # of swaps after each move; enough to tell good counts from bad ones
WORTH = 1e-3  # above its least peak a layer is worth the work


def move_replicas(
    load_LE: Loads,
    expert_LP: Ints,
    gpus: int,
    most_per_expert: int,
    *,
    least_per_expert: int | Ints = 1,
    node_G: Ints | None = None,
    speed_G: Loads | None = None,
    more: Callable[[float], bool] = lambda _: True,
) -> Ints:
    """expert_LP with no layer's peak higher; one slot changes hands at a time.

    `more(share done)` is asked now and then whether to go on.
    """
    least_LE = np.broadcast_to(np.asarray(least_per_expert, dtype=np.int64), load_LE.shape)
    value_LP, replicas_LE = replica_values(load_LE, expert_LP)
    goal_L = least_peaks(value_LP, gpus, None if speed_G is None else speed_G[None]) * (1 + WORTH)
    state = _State(expert_LP.copy(), replicas_LE, peaks(load_LE, expert_LP, gpus, speed_G), len(load_LE))
    while len(rows := state.open_rows(goal_L)) and more(state.tried_L[rows].min() / TRIALS):
        trials = _trials(state, rows)
        replicas_TE, load_TE = replicas_LE[trials.row_T], load_LE[trials.row_T]
        least_TE, choice_T2 = least_LE[trials.row_T], state.choices_T2(trials)
        moved = np.flatnonzero(_move_one(load_TE, replicas_TE, least_TE, most_per_expert, choice_T2))
        state.tried_L[rows] += trials.ahead_R
        state.failed_L[rows] += trials.ahead_R
        if len(moved):
            load_TE, replicas_TE = load_TE[moved], replicas_TE[moved]
            packed_TP = pack(load_TE, replicas_TE, gpus, node_G, speed_G=speed_G)
            tried_TP = balance(load_TE, packed_TP, gpus, sweeps=SWEEPS, node_G=node_G, speed_G=speed_G)
            peak_T = peaks(load_TE, tried_TP, gpus, speed_G)
            state.keep_better(trials.only(moved), tried_TP, peak_T, replicas_TE)
    return state.expert_LP


@dataclass(frozen=True, eq=False)
class _Trials:
    """Moves to try together: how many of each row, and of each its layer and how many come before."""

    rows: Ints
    ahead_R: Ints
    row_T: Ints
    ahead_T: Ints

    def only(self, moved: Ints) -> "_Trials":
        return _Trials(self.rows, self.ahead_R, self.row_T[moved], self.ahead_T[moved])


class _State:
    """Rows, their replica counts and peaks, and how many moves were tried, and failed in turn."""

    def __init__(self, expert_LP: Ints, replicas_LE: Ints, peak_L: Loads, layers: int) -> None:
        self.expert_LP, self.replicas_LE, self.peak_L = expert_LP, replicas_LE, peak_L
        self.tried_L, self.failed_L = np.zeros(layers, dtype=np.int64), np.zeros(layers, dtype=np.int64)

    def open_rows(self, goal_L: Loads) -> Ints:
        untried_L = (self.failed_L < len(CHOICES)) & (self.tried_L < TRIALS)
        return np.flatnonzero((self.peak_L > goal_L) & untried_L)

    def choices_T2(self, trials: _Trials) -> Ints:
        choice_T2: Ints = CHOICES[(self.tried_L[trials.row_T] + trials.ahead_T) % len(CHOICES)]
        return choice_T2

    def keep_better(self, trials: _Trials, tried_TP: Ints, peak_T: Loads, replicas_TE: Ints) -> None:
        """The first better one of each layer; what it tried beyond is forgotten."""
        better = np.flatnonzero(peak_T < self.peak_L[trials.row_T] * (1 - 1e-9))
        better = better[np.unique(trials.row_T[better], return_index=True)[1]]
        row_B = trials.row_T[better]
        beyond_B = trials.ahead_R[np.searchsorted(trials.rows, row_B)]
        self.tried_L[row_B] += trials.ahead_T[better] + 1 - beyond_B
        self.failed_L[row_B] = 0
        self.expert_LP[row_B], self.peak_L[row_B] = tried_TP[better], peak_T[better]
        self.replicas_LE[row_B] = replicas_TE[better]


def _trials(state: _State, rows: Ints) -> _Trials:
    """What each row would try next, several at once where few rows are left."""
    left_R = np.minimum(len(CHOICES) - state.failed_L[rows], TRIALS - state.tried_L[rows])
    ahead_R = np.minimum(left_R, max(AT_ONCE // len(rows), 1))
    row_T = np.repeat(rows, ahead_R)
    ahead_T = np.arange(len(row_T)) - np.repeat(np.cumsum(ahead_R) - ahead_R, ahead_R)
    return _Trials(rows, ahead_R, row_T, ahead_T)


def _move_one(
    load_TE: Loads, replicas_TE: Ints, least_TE: Ints, most_per_expert: int, choice_T2: Ints
) -> npt.NDArray[np.bool_]:
    """Change `replicas_TE` in place where both ends of the move exist and differ; returns where."""
    trial_T = np.arange(len(load_TE))
    heaviest_T, cheapest_T = np.minimum(choice_T2, load_TE.shape[1] - 1).T
    gain_TE = np.where(replicas_TE < most_per_expert, load_TE / replicas_TE, -np.inf)
    cost_TE = np.where(replicas_TE > least_TE, load_TE / np.maximum(replicas_TE - 1, 1), np.inf)
    to_T = np.argsort(-gain_TE, axis=1, kind="stable")[trial_T, heaviest_T]
    from_T = np.argsort(cost_TE, axis=1, kind="stable")[trial_T, cheapest_T]
    possible_T: npt.NDArray[np.bool_] = (
        (to_T != from_T) & np.isfinite(gain_TE[trial_T, to_T]) & np.isfinite(cost_TE[trial_T, from_T])
    )
    trials = np.flatnonzero(possible_T)
    replicas_TE[trials, to_T[trials]] += 1
    replicas_TE[trials, from_T[trials]] -= 1
    return possible_T
