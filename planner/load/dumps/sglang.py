"""SGLang 0.5.23: the recorder's stat dumps, and the ids that --enable-return-routed-experts gives.

Its per_pass and per_token dumps are next door.
Shapes: B buffered steps, L decoder layers, E experts, T tokens, K = top_k.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.load.dumps import sglang_passes
from planner.load.dumps.opened import Opened
from planner.load.dumps.parts import distinct_counts, join_requests
from planner.load.recording import Array, Recording, with_windows
from planner.model import ModelSpec


def recognise(found: Opened, model: ModelSpec) -> bool:
    """A stat dump holds 'logical_count', a detailed one 'records'; raw bytes are what one request gets."""
    del model
    return found.kind == "raw" or (found.kind == "torch" and found.holds("logical_count", "records"))


def read(dumps: Sequence[Opened], model: ModelSpec, ranks: str | None) -> list[Recording]:
    """One recording a stat dump, one of all detailed dumps together, one of all requests together."""
    stats = [found for found in dumps if found.holds("logical_count")]
    detailed = [found for found in dumps if found.kind == "torch" and not found.holds("logical_count")]
    requests = [found for found in dumps if found.kind == "raw"]
    recordings = [
        _stat(found, counts, notes) for found, counts, notes in distinct_counts(stats, _counts, ranks)
    ]
    if detailed:
        recordings.append(sglang_passes.read(detailed, model, ranks))
    if requests:
        ids = [(found.path, _ids(found, model)) for found in requests]
        recordings.append(join_requests(ids, model, "SGLang"))
    return recordings


def _counts(found: Opened) -> Array:
    """logical_count_BLE as the file has it."""
    counts: Any = found.value["logical_count"]
    if not isinstance(counts, np.ndarray) or counts.ndim not in (2, 3) or not counts.size:
        shape = list(counts.shape) if isinstance(counts, np.ndarray) else type(counts).__name__
        raise BadInput(
            f"{found.path}: 'logical_count' is {shape}; "
            "SGLang writes a tensor [buffered step, decoder layer, expert]"
        )
    return with_windows(counts)


def _stat(found: Opened, counts_BLE: Array, notes: tuple[str, ...]) -> Recording:
    """The buffer without the steps that nothing was written to.

    The counts are already by expert and summed over ranks.
    """
    used_B = np.asarray(counts_BLE.any(axis=(1, 2)))
    if not used_B.any():
        raise BadInput(
            f"{found.path}: all {len(used_B)} steps are zero; "
            "start recording, serve requests, then dump (a dump empties the buffer)"
        )
    notes += tuple(f"{found.path}: {note}" for note in _buffer_notes(used_B))
    return Recording(
        str(found.path), counts_BLE[used_B], window_unit="forward pass", notes=notes, logical=True
    )


def _buffer_notes(used_B: npt.NDArray[np.bool_]) -> list[str]:
    steps, used = len(used_B), int(used_B.sum())
    notes = []
    if used < steps:
        notes.append(f"{steps - used} of {steps} buffered steps are zero (unused, or idle passes); left out")
    if steps > 1 and (used == steps or not used_B[:used].all()):
        full = "is full" if used == steps else "does not begin at its start"
        notes.append(
            f"the buffer {full}, so it may have wrapped around: "
            "older steps may be overwritten and the order of windows may not be that of time "
            "(a recording with --expert-distribution-recorder-buffer-size -1 keeps all, in order)"
        )
    return notes


def _ids(found: Opened, model: ModelSpec) -> Array:
    """Raw int32 as ids [token, decoder layer, k]."""
    row_bytes = 4 * model.layers * model.top_k
    if len(found.value) % row_bytes:
        raise BadInput(
            f"{found.path}: {len(found.value):,} bytes are no multiple of {row_bytes}: "
            f"one token of {model.name} is {model.layers} decoder layers x {model.top_k} ids of 4 bytes, "
            "so the file is of another model or cut short"
        )
    return np.frombuffer(found.value, dtype="<i4").reshape(-1, model.layers, model.top_k)
