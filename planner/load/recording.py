"""A Recording: one load file's figures as they stand, before anything is known of the model's layers.

Shapes: W windows, L layer rows, E experts, T tokens, K = top_k.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import LARGEST_FILE_BYTES, BadInput

Array = npt.NDArray[Any]

PHASES = ("prefill", "decode", "unknown")
LARGEST_ID = 1 << 40  # of layer ids and sequence lengths; beyond it a file is damaged


@dataclass(frozen=True, eq=False)
class Recording:
    """One file's figures before any check against a model: counts [W, L, E], or a trace's ids [L, T, K]."""

    path: str
    values: Array
    is_trace: bool = False
    layer_ids: tuple[int, ...] | None = None  # None: the file does not say which layers its rows are
    sequence_lengths: tuple[int, ...] | None = None
    window_names: tuple[str, ...] = ()
    window_unit: str = ""
    phase: str = "unknown"
    source: str = ""  # a publication the file names
    model: str = ""  # the model that the file says it was recorded on
    notes: tuple[str, ...] = ()
    logical: bool = False  # the ids are known to be of experts, never of slots
    together_LEE: Array | None = None  # beside counts: tokens that chose both experts, over all windows

    def __post_init__(self) -> None:
        if self.values.ndim != 3 or 0 in self.values.shape:
            counts = "counts need the axes [layer, expert] or [window, layer, expert]"
            what = "a trace needs the axes [layer, token, k]" if self.is_trace else counts
            raise BadInput(f"{self.path}: {what}, none empty; got shape {list(self.values.shape)}")
        if self.phase not in PHASES:
            raise BadInput(f"{self.path}: phase {self.phase!r} is not prefill, decode or unknown")
        self._check_labels()

    @property
    def rows(self) -> int:
        """How many layers the file has a row for."""
        return int(self.values.shape[0 if self.is_trace else 1])

    def _check_labels(self) -> None:
        """BadInput where rows and windows have not as many names as there are of them."""
        ids = self.layer_ids
        if ids is not None and not len(ids) == len(set(ids)) == self.rows:
            got = f"got {len(ids)} ids, {len(set(ids))} distinct"
            raise BadInput(f"{self.path}: {self.rows} layer rows need as many distinct layer ids; {got}")
        windows = len(self.sequence_lengths or (0,)) if self.is_trace else len(self.values)
        names = len(self.window_names)
        if names and names != windows:
            raise BadInput(f"{self.path}: {windows} windows need as many names in 'windows'; got {names}")


def check_size(path: str, *axes: int) -> None:
    """BadInput where int64 counts with these axes would be larger than any file we read."""
    size = int(np.prod(np.array(axes, dtype=object))) * 8
    if size > LARGEST_FILE_BYTES:
        product = " x ".join(map(str, axes))
        raise BadInput(
            f"{path}: windows x layers x experts = {product} take {size:,} bytes; "
            "record fewer windows or merge them"
        )


def with_windows(counts: Array) -> Array:
    """Counts [layer, expert] of a single window get their window axis."""
    return counts[None] if counts.ndim == 2 else counts


def array_of(nested: object, path: str, name: str) -> Array:
    """Nested lists as an array; a text or null among the numbers stays what it is."""
    try:
        array = np.array(nested)
        return array if array.dtype.kind in "iuf" else np.array(nested, dtype=object)
    except (ValueError, TypeError, OverflowError) as error:
        raise BadInput(
            f"{path}: '{name}' is not made of equally long lists of numbers; a row may be cut short"
        ) from error


def whole_numbers(value: object, path: str, name: str) -> tuple[int, ...] | None:
    """A list of ids or lengths, or None where there is none."""
    if value is None:
        return None
    array = value if isinstance(value, np.ndarray) else array_of(value, path, name)
    is_list = array.ndim == 1 and len(array) and array.dtype.kind in "iu"
    if not is_list or (array < 0).any() or (array > LARGEST_ID).any():
        raise BadInput(f"{path}: '{name}' must be a list of whole numbers from 0; got {_short(array)}")
    return tuple(array.tolist())


def notes_of(path: str, said: Iterable[str], *, both: bool) -> tuple[str, ...]:
    """What the file itself says, and that its trace is left aside where it holds counts too."""
    return (*said, f"{path}: holds counts and a trace; the counts are used") if both else tuple(said)


def _short(array: Array) -> str:
    text = " ".join(str(array.tolist()).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
