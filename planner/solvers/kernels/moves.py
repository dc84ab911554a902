"""Replica moves: take a slot from an expert that can spare one, give it to one that weighs heavily, pack and balance again; keep what is better.

Shapes: L layers, E experts, P slots, G GPUs; T trials of a move, several a layer.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.packing import Ints, Loads, pack, peaks, replica_values
from planner.solvers.kernels.swaps import balance, least_peaks

CHOICES = np.array(
    [(0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (2, 0), (1, 2), (2, 1), (2, 2)]
)  # n-th heaviest receives, m-th cheapest gives
TRIALS = 3 * len(CHOICES)  # of a layer; it is also left when every choice failed in turn
AT_ONCE = 64  # trials packed together: what a layer would try next is tried early where few layers are left, as one call costs as much as many
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
    """expert_LP with no layer's peak higher; one slot changes hands at a time. `more(share done)` is asked now and then whether to go on."""
    expert_LP = expert_LP.copy()
    least_LE = np.broadcast_to(np.asarray(least_per_expert, dtype=np.int64), load_LE.shape)
    value_LP, replicas_LE = replica_values(load_LE, expert_LP)
    goal_L = least_peaks(value_LP, gpus, None if speed_G is None else speed_G[None]) * (1 + WORTH)
    peak_L = peaks(load_LE, expert_LP, gpus, speed_G)
    tried_L, failed_L = np.zeros(len(load_LE), dtype=np.int64), np.zeros(len(load_LE), dtype=np.int64)
    while len(
        rows := np.flatnonzero((peak_L > goal_L) & (failed_L < len(CHOICES)) & (tried_L < TRIALS))
    ) and more(tried_L[rows].min() / TRIALS):
        ahead_R = np.minimum(
            np.minimum(len(CHOICES) - failed_L[rows], TRIALS - tried_L[rows]), max(AT_ONCE // len(rows), 1)
        )
        row_T = np.repeat(rows, ahead_R)
        ahead_T = np.arange(len(row_T)) - np.repeat(np.cumsum(ahead_R) - ahead_R, ahead_R)
        replicas_TE = replicas_LE[row_T]
        choice_T2 = CHOICES[(tried_L[row_T] + ahead_T) % len(CHOICES)]
        moved = np.flatnonzero(
            _move_one(load_LE[row_T], replicas_TE, least_LE[row_T], most_per_expert, choice_T2)
        )
        tried_L[rows] += ahead_R
        failed_L[rows] += ahead_R
        row_T, ahead_T, replicas_TE = row_T[moved], ahead_T[moved], replicas_TE[moved]
        if len(row_T):
            packed_TP = pack(load_LE[row_T], replicas_TE, gpus, node_G, speed_G=speed_G)
            tried_TP = balance(load_LE[row_T], packed_TP, gpus, sweeps=SWEEPS, node_G=node_G, speed_G=speed_G)
            peak_T = peaks(load_LE[row_T], tried_TP, gpus, speed_G)
            better = np.flatnonzero(peak_T < peak_L[row_T] * (1 - 1e-9))
            better = better[
                np.unique(row_T[better], return_index=True)[1]
            ]  # the first of each layer; what it tried beyond is forgotten
            row_B = row_T[better]
            tried_L[row_B] += ahead_T[better] + 1 - ahead_R[np.searchsorted(rows, row_B)]
            failed_L[row_B] = 0
            expert_LP[row_B], peak_L[row_B], replicas_LE[row_B] = (
                tried_TP[better],
                peak_T[better],
                replicas_TE[better],
            )
    return expert_LP


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
