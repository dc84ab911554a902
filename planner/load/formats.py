"""Load files as they stand: JSON, YAML and npz to one Recording. Nothing here knows which layers a model has.

Shapes: W windows, L layer rows, E experts, T tokens, K = top_k.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import LARGEST_FILE_BYTES, BadInput, check_keys, read_json, read_npz, read_yaml
from planner.model import ModelSpec

Array = npt.NDArray[Any]

COUNTS_NAMES = ("counts", "tokens", "expert_counts", "logical_count", "load")
TRACE_NAMES = ("topk_ids", "experts", "trace")
LENGTHS_NAMES = ("seq_lens", "sequence_lengths")
TOGETHER_NAMES = ("together", "cooccurrence")
LAYER_NAMES = ("layer_ids", "layers")
TREE_KEYS: dict[str, type | tuple[type, ...]] = {
    "counts": (list, dict),
    "trace": list,
    "sequence_lengths": list,
    "layer_ids": list,
    "windows": list,
    "window_unit": str,
    "phase": str,
    "source": str,
    "notes": list,
}


@dataclass(frozen=True, eq=False)
class Recording:
    """One file's figures before any check against a model: counts [W, L, E], or the ids of a trace [L, T, K]."""

    path: str
    values: Array
    is_trace: bool = False
    layer_ids: tuple[int, ...] | None = None  # None: the file does not say which layers its rows are
    sequence_lengths: tuple[int, ...] | None = None
    window_names: tuple[str, ...] = ()
    window_unit: str = ""
    phase: str = "unknown"
    source: str = ""  # a publication the file names
    notes: tuple[str, ...] = ()
    logical: bool = False  # the ids are known to be of experts, never of slots
    together_LEE: Array | None = (
        None  # beside counts: tokens that chose two experts together, summed over windows
    )

    def __post_init__(self) -> None:
        if self.values.ndim != 3 or 0 in self.values.shape:
            what = (
                "a trace needs the axes [layer, token, k]"
                if self.is_trace
                else "counts need the axes [layer, expert] or [window, layer, expert]"
            )
            raise BadInput(f"{self.path}: {what}, none empty; got shape {list(self.values.shape)}")
        if self.phase not in ("prefill", "decode", "unknown"):
            raise BadInput(f"{self.path}: phase {self.phase!r} is not prefill, decode or unknown")
        rows = self.values.shape[0 if self.is_trace else 1]
        if self.layer_ids is not None and (len(self.layer_ids) != rows or len(set(self.layer_ids)) != rows):
            raise BadInput(
                f"{self.path}: {rows} layer rows need as many distinct layer ids; got {len(self.layer_ids)} ids, {len(set(self.layer_ids))} distinct"
            )
        windows = len(self.sequence_lengths or (0,)) if self.is_trace else len(self.values)
        if self.window_names and len(self.window_names) != windows:
            raise BadInput(
                f"{self.path}: {windows} windows need as many names in 'windows'; got {len(self.window_names)}"
            )


def check_size(path: str, *axes: int) -> None:
    """BadInput where int64 counts with these axes would be larger than any file we read."""
    size = int(np.prod(np.array(axes, dtype=object))) * 8
    if size > LARGEST_FILE_BYTES:
        raise BadInput(
            f"{path}: windows x layers x experts = {' x '.join(map(str, axes))} take {size:,} bytes; record fewer windows or merge them"
        )


def read_tree_recording(path: Path) -> Recording:
    """A JSON or YAML file: bare nested lists, a mapping from layer id to counts, or the documented keys."""
    tree = read_json(path) if path.suffix.lower() == ".json" else read_yaml(path)
    if isinstance(tree, list) or _is_by_layer(tree):
        tree = {"counts": tree}
    check_keys(tree, str(path), {}, TREE_KEYS)
    counts, layer_ids = tree.get("counts"), tree.get("layer_ids")
    if _is_by_layer(counts):
        if layer_ids is not None:
            raise BadInput(f"{path}: 'counts' is keyed by layer id, so 'layer_ids' must be left out")
        counts, layer_ids = list(counts.values()), [int(key) for key in counts]
    elif isinstance(counts, dict):
        raise BadInput(
            f"{path}: the keys of 'counts' must be layer ids (whole numbers); got {next(iter(counts), 'none')!r}"
        )
    if counts is None and "trace" not in tree:
        raise BadInput(
            f"{path}: neither 'counts' nor 'trace' is there; known keys are {', '.join(TREE_KEYS)}"
        )
    both = counts is not None and "trace" in tree
    name, nested = ("trace", tree["trace"]) if counts is None else ("counts", counts)
    return Recording(
        str(path),
        _with_windows(_array(nested, str(path), name), name),
        is_trace=counts is None,
        layer_ids=_whole_numbers(layer_ids, str(path), "layer_ids"),
        sequence_lengths=_whole_numbers(tree.get("sequence_lengths"), str(path), "sequence_lengths"),
        window_names=tuple(map(str, tree.get("windows", ()))),
        window_unit=tree.get("window_unit", ""),
        phase=tree.get("phase", "unknown"),
        source=tree.get("source", ""),
        notes=(
            *map(str, tree.get("notes", ())),
            *((f"{path}: holds counts and a trace; the counts are used",) if both else ()),
        ),
    )


def read_array_recording(path: Path, model: ModelSpec) -> Recording:
    """An .npz or .npy file. A lone array of fitting shape is accepted under any name."""
    arrays = read_npz(path)
    counts, trace = _named(arrays, COUNTS_NAMES), _named(arrays, TRACE_NAMES)
    layers, lengths, together = (
        _named(arrays, names) for names in (LAYER_NAMES, LENGTHS_NAMES, TOGETHER_NAMES)
    )
    if counts is None and trace is None:
        rest = [
            array
            for name, array in arrays.items()
            if name not in LAYER_NAMES + LENGTHS_NAMES + TOGETHER_NAMES and array.dtype.kind != "U"
        ]
        last = rest[0].shape[-1] if len(rest) == 1 and rest[0].ndim in (2, 3) else None
        if last == model.experts:
            counts = rest[0]
        elif last == model.top_k and rest[0].ndim == 3:
            trace = rest[0]
        else:
            found = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items()) or "nothing"
            raise BadInput(
                f"{path}: holds {found}; expected 'counts' [layer, {model.experts}] or [window, layer, {model.experts}], "
                f"or 'topk_ids' [layer, token, {model.top_k}] with 'seq_lens', for {model.name}"
            )
    values, name = (counts, "counts") if counts is not None else (trace, "trace")
    assert values is not None
    return Recording(
        str(path),
        _with_windows(values, name),
        is_trace=counts is None,
        layer_ids=_whole_numbers(layers, str(path), "layer_ids"),
        sequence_lengths=_whole_numbers(lengths, str(path), "seq_lens"),
        phase=" ".join(_words(arrays, "phase")) or "unknown",
        source=" ".join(_words(arrays, "source")),
        together_LEE=together if counts is not None else None,
        notes=(
            *_words(arrays, "notes"),
            *(
                (f"{path}: holds counts and a trace; the counts are used",)
                if counts is not None and trace is not None
                else ()
            ),
        ),
    )


def _words(arrays: dict[str, Array], name: str) -> tuple[str, ...]:
    """The texts of an array of texts; what is no text says nothing about the figures."""
    return tuple(arrays[name].ravel().tolist()) if name in arrays and arrays[name].dtype.kind == "U" else ()


def _named(arrays: dict[str, Array], names: tuple[str, ...]) -> Array | None:
    return next((arrays[name] for name in names if name in arrays), None)


def _with_windows(values: Array, name: str) -> Array:
    """Counts of a single window get their window axis."""
    return values[None] if name == "counts" and values.ndim == 2 else values


def _is_by_layer(tree: object) -> bool:
    return (
        isinstance(tree, dict)
        and bool(tree)
        and all(str(key).isdecimal() and len(str(key)) < 10 for key in tree)
    )


def _array(nested: object, path: str, name: str) -> Array:
    try:
        array = np.array(nested)
        return (
            array if array.dtype.kind in "iuf" else np.array(nested, dtype=object)
        )  # keeps a text or null apart from the numbers beside it
    except (ValueError, TypeError, OverflowError) as error:
        raise BadInput(
            f"{path}: '{name}' is not made of equally long lists of numbers; a row may be cut short"
        ) from error


def _whole_numbers(value: object, path: str, name: str) -> tuple[int, ...] | None:
    """A list of ids or lengths, or None where there is none."""
    if value is None:
        return None
    array = value if isinstance(value, np.ndarray) else _array(value, path, name)
    if (
        array.ndim != 1
        or not len(array)
        or array.dtype.kind not in "iu"
        or (array < 0).any()
        or (array > 1 << 40).any()
    ):
        raise BadInput(f"{path}: '{name}' must be a list of whole numbers from 0; got {_short(array)}")
    return tuple(array.tolist())


def _short(array: Array) -> str:
    text = " ".join(str(array.tolist()).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
