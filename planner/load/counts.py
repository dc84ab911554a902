"""Counts that can be believed: whole, finite, not negative, and in the range that their type holds exactly.

Shapes: W windows, L layers, E experts.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.load.profile import NEGATIVE_COUNTS, Counts
from planner.load.recording import Array, Recording

LARGEST = np.iinfo(np.int64).max
Mask = npt.NDArray[np.bool_]


def recorded_counts(recording: Recording, layer_ids: npt.NDArray[np.int64]) -> Counts:
    """The counts as int64, never through a narrower float; BadInput with the first cell that is no count."""
    values = recording.values
    bad = _no_counts(values)
    if bad.any():
        window, row, expert = (int(index) for index in np.argwhere(bad)[0])
        name = f"window {recording.window_names[window]!r}" if recording.window_names else f"window {window}"
        where = f"{recording.path}: {name}, layer {layer_ids[row]}, expert {expert}"
        value = values[window, row, expert]
        raise BadInput(f"{where}: the count is {str(value)[:40]}; {_why(value)}")
    return values.astype(np.int64)


def inexact(values: Array) -> Mask:
    """Which floats are no counts: not whole or finite, negative, or where their type skips whole numbers."""
    not_whole = ~np.isfinite(values) | (values != np.floor(values))
    return np.asarray(not_whole | (values < 0) | (values >= _exact_below(values.dtype)))


def _exact_below(dtype: np.dtype[Any]) -> float:
    """Up to where floats of this type hold every whole number: 2^24 for float32, 2^53 for float64."""
    return float(2.0 ** min(np.finfo(dtype).nmant + 1, 53))


def _no_counts(values: Array) -> Mask:
    if values.dtype.kind == "f":
        return inexact(values)
    if values.dtype.kind == "u":
        return np.asarray(values > LARGEST)
    if values.dtype.kind == "i":
        return np.asarray(values < 0)
    if values.dtype.kind == "O":
        return np.asarray(np.frompyfunc(_is_no_count, 1, 1)(values).astype(bool))
    return np.ones(values.shape, dtype=bool)


def _is_no_count(value: Any) -> bool:
    return type(value) not in {int, float} or value > LARGEST


def _why(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return "counts are whole numbers"
    if isinstance(value, float | np.floating) and not np.isfinite(value):
        return "counts are finite; drop the windows with a broken counter"
    if value < 0:
        return NEGATIVE_COUNTS
    if value == int(value):
        return (
            "a float of this size, or a number past int64, is no longer exact; "
            "write counts as integers below 2^63"
        )
    return "counts are whole numbers; give assignments, not shares or averages"
