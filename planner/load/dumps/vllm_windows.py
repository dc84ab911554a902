"""The folder of load windows that the vLLM plugin of a plan writes: counts of experts, one file a window."""

from collections.abc import Sequence

import numpy as np

from planner.base import BadInput, read_npz
from planner.load.dumps.opened import Opened
from planner.load.recording import Array, Recording, whole_numbers
from planner.model import ModelSpec

_PATTERN = "window-{}-*.npz"


def recognise(found: Opened, model: ModelSpec) -> bool:
    """By the names of its files."""
    del model
    return found.kind == "folder" and any(found.path.glob(_PATTERN.format("*")))


def read(dumps: Sequence[Opened], model: ModelSpec, ranks: str | None) -> list[Recording]:
    """A recording a folder: its windows in the order in which they were written."""
    del model, ranks
    return [_recording(found) for found in dumps]


def _recording(found: Opened) -> Recording:
    paths = sorted(found.path.glob(_PATTERN.format("moe")))
    if not paths:
        raise BadInput(f"{found.path}: it holds windows of draft layers alone; give those of the MoE layers")
    windows = [read_npz(path) for path in paths]
    shapes = {_shape(arrays) for arrays in windows}
    if len(shapes) > 1 or None in shapes:
        raise BadInput(
            f"{found.path}: its windows are not of one model: each holds 'counts' [layer, expert] and "
            "the same 'layer_ids'; move those of another model away"
        )
    first = windows[0]
    return Recording(
        str(found.path),
        np.stack([arrays["counts"] for arrays in windows]),
        layer_ids=whole_numbers(first["layer_ids"], str(found.path), "layer_ids"),
        notes=_notes(found, windows),
        logical=True,
    )


def _shape(arrays: dict[str, Array]) -> tuple[object, ...] | None:
    """What windows of one model share; None where this is no window."""
    counts, layer_ids = arrays.get("counts"), arrays.get("layer_ids")
    if counts is None or layer_ids is None or counts.ndim != 2:
        return None
    return (counts.shape, *layer_ids.ravel().tolist())


def _notes(found: Opened, windows: Sequence[dict[str, Array]]) -> tuple[str, ...]:
    said = []
    maps = {str(arrays["map_sha256"]) for arrays in windows if "map_sha256" in arrays}
    if len(maps) > 1:
        said.append(f"{found.path}: recorded under {len(maps)} maps; counts are of experts, whatever the map")
    drafts = len(list(found.path.glob(_PATTERN.format("draft"))))
    if drafts:
        said.append(f"{found.path}: {drafts} windows of draft layers are left out")
    return tuple(said)
