"""Load files to one LoadProfile: `read_load`. A file that cannot be believed is refused; what was dropped, filled or suspected is in the notes.

Shapes: W windows, L layers, T tokens, K = top_k.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from planner.base import BadInput, read_bytes
from planner.load.cooccurrence import check_pairs, drawn_trace
from planner.load.csv_tables import read_csv_recording
from planner.load.doubts import odd_totals, suspect_windows
from planner.load.dumps.parts import distinct_parts
from planner.load.dumps.registry import read_dumps
from planner.load.dumps.slots import SlotMap, logical_counts, logical_trace
from planner.load.formats import Array, Recording, check_size, read_array_recording, read_tree_recording
from planner.load.profile import Counts, LoadProfile, Trace
from planner.load.rows import check_totals, fill_layers, fit_counts, resolve_layers, spans
from planner.load.trace import count_trace, fit_trace
from planner.model import ModelSpec


@dataclass(frozen=True, eq=False)
class _Part:
    """One file's windows on the model's own layers."""

    recording: Recording
    tokens_WLE: Counts
    layer_ids: tuple[int, ...]
    trace: Trace | None
    notes: list[str]

    @property
    def window_names(self) -> tuple[str, ...]:
        return self.recording.window_names or tuple(map(str, range(len(self.tokens_WLE))))

    @property
    def window_unit(self) -> str:
        return self.recording.window_unit or ("sequence" if self.recording.is_trace else "window")


def read_load(
    paths: Sequence[Path], model: ModelSpec, slots: SlotMap | None = None, ranks: str | None = None
) -> LoadProfile:
    """The load in files of ours or dumps of engines, with a row for every placed layer of `model`; windows of several files in the order given.

    Several files are several domains; all dumps of one engine are one, and a file whose windows are domains says so itself. A trace gives one window a
    sequence. `slots` says which experts the slots held, where counts are of slots; `ranks` whether identical files are one counter (same) or several
    (sum). BadInput names the file, window, layer, expert and value of what cannot be used.
    """
    if not paths:
        raise BadInput("no load file was given")
    dumps, ours = read_dumps(list(map(Path, paths)), model, ranks)
    by_file = [
        (path, found)
        for path in map(Path, paths)
        for found in (dumps.get(path, []) if path not in ours else [read_recording(path, model)])
    ]
    recordings = [recording for _, recording in by_file]
    if slots is not None:
        recordings = _by_expert(recordings, slots, model)
    parts = [_fit(recording, model) for recording in recordings]
    for part in parts[1:]:
        if part.layer_ids != parts[0].layer_ids:
            first = parts[0]
            raise BadInput(
                f"{part.recording.path} has layers {spans(part.layer_ids)}, {first.recording.path} has {spans(first.layer_ids)}; give the same layers"
            )
    kept, twins = distinct_parts([(part.recording.path, part.tokens_WLE) for part in parts], ranks)
    parts, by_file = [parts[place] for place in kept], [by_file[place] for place in kept]
    sources = ", ".join(part.recording.path for part in parts)
    check_size(sources, sum(len(part.tokens_WLE) for part in parts), len(parts[0].layer_ids), model.experts)
    measured_WLE = np.concatenate([part.tokens_WLE for part in parts])
    notes = (
        twins
        + [note for part in parts for note in part.notes]
        + check_totals(sources, measured_WLE, parts[0].layer_ids)
        + _notes_on_parts(parts)
    )
    notes += odd_totals(sources, measured_WLE, parts[0].layer_ids, model) + (
        suspect_windows(sources, measured_WLE, model) if dumps else []
    )
    tokens_WLE, filled, filled_notes = fill_layers(measured_WLE, parts[0].layer_ids, model)
    units, phases = {part.window_unit for part in parts}, {part.recording.phase for part in parts}
    return LoadProfile(
        tokens_WLE,
        model.placed_layer_ids,
        source=", ".join(part.recording.source or part.recording.path for part in parts),
        window_unit=units.pop() if len(units) == 1 else "window",
        window_names=_window_names(parts),
        domains=_domains([path for path, _ in by_file], parts),
        phase=phases.pop() if len(phases) == 1 else "unknown",
        trace=_join_traces([part.trace for part in parts], parts[0].layer_ids, model),
        unmeasured_layer_ids=filled,
        notes=(*notes, *filled_notes),
    )


def _by_expert(recordings: list[Recording], slots: SlotMap, model: ModelSpec) -> list[Recording]:
    """Counts and ids of slots made those of experts; BadInput where no file needs a map."""
    if all(recording.logical for recording in recordings):
        raise BadInput(
            f"{slots.source}: no map is needed, since {recordings[0].path} is by expert already; leave it out"
        )
    return [recording if recording.logical else _logical(recording, slots, model) for recording in recordings]


def _logical(recording: Recording, slots: SlotMap, model: ModelSpec) -> Recording:
    layer_ids = resolve_layers(recording, recording.values.shape[0 if recording.is_trace else 1], model)
    if recording.is_trace:
        return logical_trace(recording, layer_ids, slots)
    values = logical_counts(recording.values, layer_ids, recording.path, slots, model.experts)
    slotted = (
        ()
        if recording.together_LEE is None
        else (f"{recording.path}: its co-occurrence counts are of slots, so they are not used",)
    )
    return replace(
        recording, values=values, logical=True, together_LEE=None, notes=(*recording.notes, *slotted)
    )


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
        f"{path}: no engine's dump that we know, and a load file ends in .csv, .json, .yaml, .npz or .npy, not {suffix!r}; rename or convert it"
    )


def _fit(recording: Recording, model: ModelSpec) -> _Part:
    if recording.is_trace:
        trace, layer_ids, notes = fit_trace(recording, model)
        return _Part(
            recording,
            count_trace(trace, model.experts, recording.path),
            layer_ids,
            trace,
            [*recording.notes, *notes],
        )
    tokens_WLE, layer_ids, notes = fit_counts(recording, model)
    if recording.together_LEE is None or model.top_k == 1:
        return _Part(recording, tokens_WLE, layer_ids, None, [*recording.notes, *notes])
    drawn, note = _drawn(recording, recording.together_LEE, tokens_WLE, layer_ids, model)
    return _Part(recording, tokens_WLE, layer_ids, drawn, [*recording.notes, *notes, note])


def _drawn(
    recording: Recording,
    together_LEE: Array,
    tokens_WLE: Counts,
    layer_ids: tuple[int, ...],
    model: ModelSpec,
) -> tuple[Trace | None, str]:
    """Tokens with the pairs of the co-occurrence counts, whose rows are in the order of the file's."""
    given = resolve_layers(recording, recording.values.shape[1], model)
    pairs_LEE = check_pairs(together_LEE, recording.path, given, model.experts)
    kept = [given.index(layer) for layer in layer_ids]
    if not pairs_LEE[kept].any(axis=(1, 2)).all():
        silent = layer_ids[int((~pairs_LEE[kept].any(axis=(1, 2))).argmax())]
        return (
            None,
            f"{recording.path}: no experts were chosen together in layer {silent}; the co-occurrence counts are not used",
        )
    note = f"{recording.path}: tokens are drawn from its co-occurrence counts: pairs as recorded, larger groups as these imply, alike in all windows"
    return drawn_trace(pairs_LEE[kept], tokens_WLE, layer_ids, model.top_k), note


def _notes_on_parts(parts: list[_Part]) -> list[str]:
    notes = []
    if len({part.trace is None for part in parts}) == 2:
        notes.append(
            "traces and counts are mixed: the traces are used as counts only, so which experts are chosen together is not known"
        )
    for what, values in (
        ("window units", [part.window_unit for part in parts]),
        ("phases", [part.recording.phase for part in parts]),
    ):
        if len(set(values)) > 1:
            notes.append(f"the files have different {what} ({', '.join(dict.fromkeys(values))})")
    return notes


def _window_names(parts: list[_Part]) -> tuple[str, ...]:
    if len(parts) == 1:
        return parts[0].recording.window_names and parts[0].window_names
    stems = [Path(part.recording.path).stem for part in parts]
    return tuple(
        stem if len(part.tokens_WLE) == 1 and not part.recording.window_names else f"{stem}:{name}"
        for stem, part in zip(stems, parts, strict=True)
        for name in part.window_names
    )


def _domains(paths: list[Path], parts: list[_Part]) -> tuple[str, ...]:
    """The file of each window, by its name without suffix where that tells the files apart. Of one file the window's own name, where windows are domains."""
    files = list(dict.fromkeys(paths))
    if len(files) == 1:
        return (
            tuple(name for part in parts for name in part.window_names)
            if {part.window_unit for part in parts} == {"domain"}
            else ()
        )
    short = len({path.stem for path in files}) == len(files)
    return tuple(
        path.stem if short else str(path)
        for path, part in zip(paths, parts, strict=True)
        for _ in part.tokens_WLE
    )


def _join_traces(traces: list[Trace | None], layer_ids: tuple[int, ...], model: ModelSpec) -> Trace | None:
    """One trace with a row for every placed layer, -1 where a layer was not recorded; None unless every part has a trace."""
    recorded = [trace for trace in traces if trace is not None]
    if len(recorded) < len(traces):
        return None
    recorded_LTK = np.concatenate([trace.experts_LTK for trace in recorded], axis=1)
    experts_LTK = np.full((len(model.placed_layer_ids), *recorded_LTK.shape[1:]), -1, dtype=np.int32)
    experts_LTK[[model.placed_layer_ids.index(layer) for layer in layer_ids]] = recorded_LTK
    return Trace(experts_LTK, tuple(length for trace in recorded for length in trace.sequence_lengths))
