"""NumPy load files (.npz, .npy) to a Recording; a lone array of fitting shape is accepted under any name.

Shapes: L layer rows, E experts.
"""

from pathlib import Path

from planner.base import BadInput, read_npz
from planner.load.recording import Array, Recording, notes_of, whole_numbers, with_windows
from planner.model import ModelSpec

COUNTS_NAMES = ("counts", "tokens", "expert_counts", "logical_count", "load")
TRACE_NAMES = ("topk_ids", "experts", "trace")
LENGTHS_NAMES = ("seq_lens", "sequence_lengths")
TOGETHER_NAMES = ("together", "cooccurrence")
LAYER_NAMES = ("layer_ids", "layers")
Arrays = dict[str, Array]


def read_array_recording(path: Path, model: ModelSpec) -> Recording:
    """Counts are preferred where the file holds a trace too."""
    arrays, where = read_npz(path), str(path)
    counts, trace = _named(arrays, COUNTS_NAMES), _named(arrays, TRACE_NAMES)
    both = counts is not None and trace is not None
    if counts is None and trace is None:
        counts, trace = _lone(arrays, where, model)
    values = with_windows(counts) if counts is not None else trace
    assert values is not None
    return Recording(
        where,
        values,
        is_trace=counts is None,
        layer_ids=whole_numbers(_named(arrays, LAYER_NAMES), where, "layer_ids"),
        sequence_lengths=whole_numbers(_named(arrays, LENGTHS_NAMES), where, "seq_lens"),
        phase=" ".join(_words(arrays, "phase", where)) or "unknown",
        source=" ".join(_words(arrays, "source", where)),
        model=" ".join(_words(arrays, "model", where)),
        together_LEE=_named(arrays, TOGETHER_NAMES) if counts is not None else None,
        notes=notes_of(where, _words(arrays, "notes", where), both=both),
    )


def _lone(arrays: Arrays, path: str, model: ModelSpec) -> tuple[Array | None, Array | None]:
    """(counts, trace), one of them None: the only array that could be either, told apart by its shape."""
    known = LAYER_NAMES + LENGTHS_NAMES + TOGETHER_NAMES
    rest = [array for name, array in arrays.items() if name not in known and array.dtype.kind != "U"]
    if len(rest) == 1 and rest[0].ndim in (2, 3):
        if rest[0].shape[-1] == model.experts:
            return rest[0], None
        if rest[0].shape[-1] == model.top_k and rest[0].ndim == 3:
            return None, rest[0]
    found = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items()) or "nothing"
    raise BadInput(
        f"{path}: holds {found}; "
        f"expected 'counts' [layer, {model.experts}] or [window, layer, {model.experts}], "
        f"or 'topk_ids' [layer, token, {model.top_k}] with 'seq_lens', for {model.name}"
    )


def _words(arrays: Arrays, name: str, where: str) -> tuple[str, ...]:
    """The texts of an array of texts; what is no text says nothing about the figures."""
    if name not in arrays or arrays[name].dtype.kind != "U":
        return ()
    try:
        words = arrays[name].ravel().tolist()
        "".join(words).encode()
    except (ValueError, SystemError) as error:  # code points that are none, or halves of one
        raise BadInput(f"{where}: '{name}' is not readable text") from error
    return tuple(words)


def _named(arrays: Arrays, names: tuple[str, ...]) -> Array | None:
    return next((arrays[name] for name in names if name in arrays), None)
