"""Replica moves: take a slot from an expert that can spare one, give it to one that weighs heavily, pack and balance again; keep what is better.

Shapes: L layers (R of them still worth work), E experts, P slots, G GPUs.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from planner.solve.packing import Ints, Loads, pack, peaks, replica_values
from planner.solve.swaps import balance, least_peaks

CHOICES = ((0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (2, 0), (1, 2), (2, 1), (2, 2))  # n-th heaviest receives, m-th cheapest gives
ROUNDS = 3  # through all choices
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
    """expert_LP with no layer's peak higher; one slot changes hands at a time. `more(share done)` is asked before each move whether to go on."""
    expert_LP = expert_LP.copy()
    least_LE = np.broadcast_to(np.asarray(least_per_expert, dtype=np.int64), load_LE.shape)
    value_LP, _ = replica_values(load_LE, expert_LP)
    goal_L = least_peaks(value_LP, gpus, None if speed_G is None else speed_G[None]) * (1 + WORTH)
    peak_L = peaks(load_LE, expert_LP, gpus, speed_G)
    failed_L = np.zeros(len(load_LE), dtype=np.int64)
    for attempt in range(ROUNDS * len(CHOICES)):
        rows = np.flatnonzero((peak_L > goal_L) & (failed_L < len(CHOICES)))
        if not len(rows) or not more(attempt / (ROUNDS * len(CHOICES))):
            break
        failed_L[rows] += 1
        _, replicas_RE = replica_values(load_LE[rows], expert_LP[rows])
        changed_R = _move_one(load_LE[rows], replicas_RE, least_LE[rows], most_per_expert, CHOICES[attempt % len(CHOICES)])
        rows, replicas_RE = rows[changed_R], replicas_RE[changed_R]
        if len(rows):
            packed_RP = pack(load_LE[rows], replicas_RE, gpus, node_G, speed_G=speed_G)
            tried_RP = balance(load_LE[rows], packed_RP, gpus, sweeps=SWEEPS, node_G=node_G, speed_G=speed_G)
            tried_R = peaks(load_LE[rows], tried_RP, gpus, speed_G)
            better = tried_R < peak_L[rows] * (1 - 1e-9)
            expert_LP[rows[better]], peak_L[rows[better]], failed_L[rows[better]] = tried_RP[better], tried_R[better], 0
    return expert_LP


def _move_one(load_RE: Loads, replicas_RE: Ints, least_RE: Ints, most_per_expert: int, choice: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Change `replicas_RE` in place where both ends of the move exist and differ; returns where."""
    (heaviest, cheapest), experts = choice, load_RE.shape[1]
    row_R = np.arange(len(load_RE))
    gain_RE = np.where(replicas_RE < most_per_expert, load_RE / replicas_RE, -np.inf)
    cost_RE = np.where(replicas_RE > least_RE, load_RE / np.maximum(replicas_RE - 1, 1), np.inf)
    to_R = np.argsort(-gain_RE, axis=1, kind="stable")[:, min(heaviest, experts - 1)]
    from_R = np.argsort(cost_RE, axis=1, kind="stable")[:, min(cheapest, experts - 1)]
    possible_R: npt.NDArray[np.bool_] = (to_R != from_R) & np.isfinite(gain_RE[row_R, to_R]) & np.isfinite(cost_RE[row_R, from_R])
    rows = np.flatnonzero(possible_R)
    replicas_RE[rows, to_R[rows]] += 1
    replicas_RE[rows, from_R[rows]] -= 1
    return possible_R
