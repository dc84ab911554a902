"""JSON and YAML load files to a Recording: nested lists, a mapping from layer id to counts, or known keys."""

from pathlib import Path
from typing import Any, TypeGuard

from planner.base import BadInput, read_json, read_yaml
from planner.load.load_shape import KEYS, LAYER_ID, LOAD
from planner.load.recording import Recording, array_of, notes_of, whole_numbers, with_windows


def read_tree_recording(path: Path) -> Recording:
    """Counts are preferred where the file holds a trace too."""
    tree = read_json(path) if path.suffix.lower() == ".json" else read_yaml(path)
    where = str(path)
    if isinstance(tree, list) or _is_by_layer(tree):
        tree = {"counts": tree}
    LOAD.check(tree, where)
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
        window_names=tuple(tree.get("windows", ())),
        window_unit=tree.get("window_unit", ""),
        phase=tree.get("phase", "unknown"),
        source=tree.get("source", ""),
        model=tree.get("model", ""),
        notes=notes_of(where, tree.get("notes", ()), both=counts is not None and "trace" in tree),
    )


def _counts(tree: dict[str, Any], path: str) -> tuple[list[Any] | None, list[int] | None]:
    """(counts, layer ids) of the documented keys. BadInput where there is a trace neither."""
    counts, layer_ids = tree.get("counts"), tree.get("layer_ids")
    if _is_by_layer(counts):
        if layer_ids is not None:
            raise BadInput(f"{path}: 'counts' is keyed by layer id, so 'layer_ids' must be left out")
        return list(counts.values()), [int(key) for key in counts]
    if counts is None and "trace" not in tree:
        raise BadInput(f"{path}: neither 'counts' nor 'trace' is there; known keys are {', '.join(KEYS)}")
    return counts, layer_ids


def _is_by_layer(tree: Any) -> TypeGuard[dict[Any, Any]]:
    """Whether this is a mapping whose keys can all be layer ids."""
    if not isinstance(tree, dict) or not tree:
        return False
    return all(LAYER_ID.fits(str(key)) for key in tree)
