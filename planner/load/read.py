"""Load files to one LoadProfile: `read_load`. A file that cannot be believed is refused.

What was dropped, filled or suspected is in the notes.
Shapes: W windows, L layers, E experts.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from planner.base import BadInput, flat, read_bytes
from planner.load.arrays import read_array_recording
from planner.load.csv_tables import read_csv_recording
from planner.load.doubts import check_shares, check_totals, odd_totals, suspect_windows
from planner.load.dumps.parts import distinct_parts
from planner.load.dumps.registry import read_dumps
from planner.load.dumps.slots import SlotMap
from planner.load.fitted import Fitted, by_expert, fit
from planner.load.joined import agreed, domains_of, join_traces, names_of, notes_on
from planner.load.profile import Counts, LoadProfile
from planner.load.recording import Recording, check_size
from planner.load.spans import spans
from planner.load.trees import read_tree_recording
from planner.load.unmeasured import fill_layers
from planner.model import ModelSpec


def read_load(
    paths: Sequence[Path], model: ModelSpec, slots: SlotMap | None = None, ranks: str | None = None
) -> LoadProfile:
    """The load in files of ours or dumps of engines, with a row for every placed layer of `model`.

    Windows of several files follow each other in the order given. Several files are several domains; all
    dumps of one engine are one, and a file whose windows are domains says so itself. A trace gives one window
    a sequence. `slots` says which experts the slots held, where counts are of slots; `ranks` whether equal
    files are one counter or several (same, sum). BadInput names file, window, layer, expert and value.
    """
    if not paths:
        raise BadInput("no load file was given")
    by_file, dumped = _recordings(list(map(Path, paths)), model, ranks)
    recordings = [recording for _, recording in by_file]
    if slots is not None:
        recordings = by_expert(recordings, slots, model)
    parts = [fit(recording, model) for recording in recordings]
    _refuse_other_layers(parts)
    kept, twins = distinct_parts([(part.path, part.tokens_WLE) for part in parts], ranks)
    parts, files = [parts[place] for place in kept], [by_file[place][0] for place in kept]
    measured_WLE, doubts = _joined_counts(parts, model, dumped=dumped)
    tokens_WLE, filled, filled_notes = fill_layers(measured_WLE, parts[0].layer_ids, model)
    said = [note for part in parts for note in part.notes]
    return LoadProfile(
        tokens_WLE,
        model.placed_layer_ids,
        source=flat(", ".join(part.recording.source or part.path for part in parts)),
        window_unit=flat(agreed([part.window_unit for part in parts], "window")),
        window_names=tuple(map(flat, names_of(parts))),
        domains=tuple(map(flat, domains_of(files, parts))),
        phase=agreed([part.recording.phase for part in parts], "unknown"),
        trace=join_traces([part.trace for part in parts], parts[0].layer_ids, model),
        unmeasured_layer_ids=filled,
        notes=tuple(map(flat, (*twins, *said, *doubts, *filled_notes))),
    )


def _recordings(
    paths: list[Path], model: ModelSpec, ranks: str | None
) -> tuple[list[tuple[Path, Recording]], bool]:
    """(each recording with its file, whether any is an engine's dump)."""
    dumps, ours = read_dumps(paths, model, ranks)
    by_file = [
        (path, recording)
        for path in paths
        for recording in ([read_recording(path, model)] if path in ours else dumps.get(path, []))
    ]
    return by_file, bool(dumps)


def read_recording(path: Path, model: ModelSpec) -> Recording:
    """The file as it stands, by its suffix."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return read_csv_recording(path, model)
    if suffix in (".json", ".yaml", ".yml"):
        return read_tree_recording(path)
    if suffix in (".npz", ".npy"):
        return read_array_recording(path, model)
    read_bytes(path)  # a missing file or a directory is told as such
    raise BadInput(
        f"{path}: no engine's dump that we know, and a load file ends in "
        f".csv, .json, .yaml, .npz or .npy, not {suffix!r}; rename or convert it"
    )


def _refuse_other_layers(parts: Sequence[Fitted]) -> None:
    """BadInput where files hold other layers than the first: their windows cannot be stacked."""
    first = parts[0]
    for part in parts[1:]:
        if part.layer_ids != first.layer_ids:
            raise BadInput(
                f"{part.path} has layers {spans(part.layer_ids)}, "
                f"{first.path} has {spans(first.layer_ids)}; give the same layers"
            )


def _joined_counts(parts: Sequence[Fitted], model: ModelSpec, *, dumped: bool) -> tuple[Counts, list[str]]:
    """(the measured counts of all parts, notes on what is doubtful about them)."""
    sources, layer_ids = ", ".join(part.path for part in parts), parts[0].layer_ids
    check_size(sources, sum(len(part.tokens_WLE) for part in parts), len(layer_ids), model.experts)
    tokens_WLE = np.concatenate([part.tokens_WLE for part in parts])
    notes = check_totals(sources, tokens_WLE, layer_ids) + notes_on(parts)
    notes += check_shares(sources, tokens_WLE, layer_ids, model, dumped=dumped)
    notes += odd_totals(sources, tokens_WLE, layer_ids, model)
    notes += suspect_windows(sources, tokens_WLE, model) if dumped else []
    return tokens_WLE, notes
