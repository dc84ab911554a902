"""Several files' windows as one load: how windows and domains are named, and what becomes of traces.

Shapes: L layers, T tokens, K = top_k.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from planner.load.fitted import Fitted
from planner.load.profile import Trace
from planner.model import ModelSpec


def agreed(values: Sequence[str], otherwise: str) -> str:
    """
    >>> agreed(["decode", "decode"], "unknown"), agreed(["decode", "prefill"], "unknown")
    ('decode', 'unknown')
    """
    return values[0] if len(set(values)) == 1 else otherwise


def notes_on(parts: Sequence[Fitted]) -> list[str]:
    """In what the files differ."""
    notes = []
    if len({part.trace is None for part in parts}) == 2:
        notes.append(
            "traces and counts are mixed: the traces are used as counts only, "
            "so which experts are chosen together is not known"
        )
    for what, values in (
        ("window units", [part.window_unit for part in parts]),
        ("phases", [part.recording.phase for part in parts]),
    ):
        if len(set(values)) > 1:
            notes.append(f"the files have different {what} ({', '.join(dict.fromkeys(values))})")
    return notes


def names_of(parts: Sequence[Fitted]) -> tuple[str, ...]:
    """Each window's name, with its file's where there are several; none where a lone file gives none."""
    if len(parts) == 1:
        return parts[0].recording.window_names
    names: list[str] = []
    for part in parts:
        stem = Path(part.path).stem
        lone = len(part.tokens_WLE) == 1 and not part.recording.window_names
        names += [stem] if lone else [f"{stem}:{name}" for name in part.window_names]
    return tuple(names)


def domains_of(paths: Sequence[Path], parts: Sequence[Fitted]) -> tuple[str, ...]:
    """The file of each window, by its name without suffix where that tells the files apart.

    Of one file the window's own name, where windows are domains.
    """
    files = set(paths)
    if len(files) == 1:
        are_domains = {part.window_unit for part in parts} == {"domain"}
        return tuple(name for part in parts for name in part.window_names) if are_domains else ()
    short = len({path.stem for path in files}) == len(files)
    names = [path.stem if short else str(path) for path in paths]
    return tuple(name for name, part in zip(names, parts, strict=True) for _ in part.tokens_WLE)


def join_traces(traces: Sequence[Trace | None], layer_ids: tuple[int, ...], model: ModelSpec) -> Trace | None:
    """One trace with a row for every placed layer, -1 where a layer was not recorded.

    None unless every part has a trace.
    """
    recorded = [trace for trace in traces if trace is not None]
    if len(recorded) < len(traces):
        return None
    recorded_LTK = np.concatenate([trace.experts_LTK for trace in recorded], axis=1)
    placed = model.placed_layer_ids
    experts_LTK = np.full((len(placed), *recorded_LTK.shape[1:]), -1, dtype=np.int32)
    experts_LTK[[placed.index(layer) for layer in layer_ids]] = recorded_LTK
    return Trace(experts_LTK, tuple(length for trace in recorded for length in trace.sequence_lengths))
