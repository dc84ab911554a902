"""Layers in the order in which effort on them pays, with the time that each may take.

Shapes: L layers, E experts.
"""

import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from planner.problem import Problem

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def whole_loads_LE(problem: Problem) -> Floats:
    """Counts, which are whole numbers, for exactness; 1 for each expert of a layer without load."""
    total_LE = problem.load.total_LE
    return np.where(total_LE.any(axis=1, keepdims=True), total_LE, 1).astype(np.float64)


def first_alike(load_LE: Floats) -> Ints:
    """first_L: for each layer the first one of the same load; filled layers are all alike.

    >>> first_alike(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])).tolist()
    [0, 1, 0]
    """
    _, first, alike_L = np.unique(load_LE, axis=0, return_index=True, return_inverse=True)
    return np.asarray(first[alike_L.ravel()])


def furthest_first(peak_L: Floats, bound_L: Floats, first_L: Ints, close: float) -> list[int]:
    """Layers above their bound, those with the largest gap first; of equal layers only the first."""
    rows = np.flatnonzero(peak_L > bound_L * (1 + close))
    rows = rows[first_L[rows] == rows]
    ordered: list[int] = rows[np.argsort(-(peak_L / bound_L)[rows], kind="stable")].tolist()
    return ordered


def with_seconds(rows: list[int], stop: float | None) -> Iterator[tuple[int, float | None]]:
    """Each layer with its part of the time until `stop`, where there is one; none once it is over."""
    for done, row in enumerate(rows):
        left = None if stop is None else (stop - time.monotonic()) / (len(rows) - done)
        if left is not None and left <= 0:
            return
        yield row, left
