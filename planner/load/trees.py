"""JSON and YAML load files to a Recording: nested lists, a mapping from layer id to counts, or known keys."""

from pathlib import Path
from typing import Any, TypeGuard

from planner.base import BadInput, check_keys, read_json, read_yaml
from planner.load.recording import Recording, array_of, notes_of, whole_numbers, with_windows

KEYS: dict[str, type | tuple[type, ...]] = {
    "counts": (list, dict),
    "trace": list,
    "sequence_lengths": list,
    "layer_ids": list,
    "windows": list,
    "window_unit": str,
    "phase": str,
    "source": str,
    "model": str,
    "notes": list,
}


def read_tree_recording(path: Path) -> Recording:
    """Counts are preferred where the file holds a trace too."""
    tree = read_json(path) if path.suffix.lower() == ".json" else read_yaml(path)
    if isinstance(tree, list) or _is_by_layer(tree):
        tree = {"counts": tree}
    where = str(path)
    check_keys(tree, where, {}, KEYS)
    counts, layer_ids = _counts(tree, where)
    if counts is None:
        values = array_of(tree["trace"], where, "trace")
    else:
        values = with_windows(array_of(counts, where, "counts"))
    return Recording(
        where,
        values,
        is_trace=counts is None,
        layer_ids=whole_numbers(layer_ids, where, "layer_ids"),
        sequence_lengths=whole_numbers(tree.get("sequence_lengths"), where, "sequence_lengths"),
        window_names=tuple(map(str, tree.get("windows", ()))),
        window_unit=tree.get("window_unit", ""),
        phase=tree.get("phase", "unknown"),
        source=tree.get("source", ""),
        model=tree.get("model", ""),
        notes=notes_of(where, map(str, tree.get("notes", ())), both=counts is not None and "trace" in tree),
    )


def _counts(tree: dict[str, Any], path: str) -> tuple[list[Any] | None, list[int] | None]:
    """(counts, layer ids) of the documented keys. BadInput where there is a trace neither."""
    counts, layer_ids = tree.get("counts"), tree.get("layer_ids")
    if _is_by_layer(counts):
        if layer_ids is not None:
            raise BadInput(f"{path}: 'counts' is keyed by layer id, so 'layer_ids' must be left out")
        return list(counts.values()), [int(key) for key in counts]
    if isinstance(counts, dict):
        key = next(iter(counts), "none")
        raise BadInput(f"{path}: the keys of 'counts' must be layer ids (whole numbers); got {key!r}")
    if counts is None and "trace" not in tree:
        raise BadInput(f"{path}: neither 'counts' nor 'trace' is there; known keys are {', '.join(KEYS)}")
    return counts, layer_ids


def _is_by_layer(tree: Any) -> TypeGuard[dict[Any, Any]]:
    """Whether this is a mapping whose keys can all be layer ids."""
    if not isinstance(tree, dict) or not tree:
        return False
    return all(str(key).isdecimal() and len(str(key)) < 10 for key in tree)
