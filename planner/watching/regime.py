"""Which of the newest windows are of the load as it is now: those since it last shifted.

Shapes: W windows, L layers, E experts.
"""

import math
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SHIFT = 2.0  # times as far from the windows before as neighbours usually are apart: the load has shifted


def present_from(tokens_WLE: Counts) -> int:
    """The first window of the load as it is now, which lasts to the newest.

    Windows are taken in turn: one that is much farther from the sum of those before than neighbours are
    apart, and than chance makes them, begins a new load. A load that always goes back and forth is one.
    """
    windows_WLE = tokens_WLE.astype(np.float64)
    apart = sorted(distance(one_LE, other_LE) for one_LE, other_LE in pairwise(windows_WLE))
    first = 0
    for window in range(1, len(windows_WLE)):
        before_LE, tokens_LE = windows_WLE[first:window].sum(axis=0), windows_WLE[window]
        by_chance = chance(before_LE, tokens_LE)
        usual = max(apart[(len(apart) - 1) // 2], by_chance) if len(apart) > 1 else 2 * by_chance
        if distance(before_LE, tokens_LE) > SHIFT * usual:
            first = window
    return first


def distance(one_LE: Floats, other_LE: Floats) -> float:
    """Share of the assignments that went to other experts, the mean over layers: 0 is alike, 1 disjoint."""
    return float(0.5 * np.abs(_shares(one_LE) - _shares(other_LE)).sum(axis=1).mean())


def chance(one_LE: Floats, other_LE: Floats) -> float:
    """The distance that samples as large as these have where nothing shifted: each share is off by
    sqrt(p (1 - p) (1/n + 1/m)), in the mean sqrt(2/π) of it.
    """
    share_LE = _shares(one_LE + other_LE)
    sizes_L = [np.maximum(tokens_LE.sum(axis=1), 1.0) for tokens_LE in (one_LE, other_LE)]
    off_LE = np.sqrt(share_LE * (1 - share_LE) * (1 / sizes_L[0] + 1 / sizes_L[1])[:, None])
    return float(0.5 * math.sqrt(2 / math.pi) * off_LE.sum(axis=1).mean())


def _shares(tokens_LE: Floats) -> Floats:
    return np.asarray(tokens_LE / np.maximum(tokens_LE.sum(axis=1, keepdims=True), 1.0))
