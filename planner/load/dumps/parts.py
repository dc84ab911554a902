"""Parts of one recording: which ranks are there, which count the same tokens, several requests as one trace.

Shapes: L layers, T tokens, K = top_k.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from planner.base import BadInput
from planner.load.dense import check_dense
from planner.load.dumps.opened import Opened
from planner.load.recording import Array, Recording
from planner.load.spans import named_spans, spans
from planner.model import ModelSpec


def distinct_parts(parts: Sequence[tuple[str, Array]], ranks: str | None) -> tuple[list[int], list[str]]:
    """(positions of the parts to use, notes), given each part's name and counts.

    `ranks` says why parts are identical. 'same': they are one counter, seen by several ranks, the first is
    used; 'sum': they are parts that happen to agree, and all are. BadInput where it does not say.
    """
    kept: list[int] = []
    notes: list[str] = []
    alike: dict[
        tuple[tuple[int, ...], float], list[int]
    ] = {}  # by shape and sum: only these can be identical
    for place, (name, counts) in enumerate(parts):
        others = alike.setdefault((counts.shape, float(counts.sum(dtype=np.float64))), [])
        twins = (other for other in others if counts.any() and np.array_equal(counts, parts[other][1]))
        twin = next(twins, None)
        others.append(place)
        if twin is None or ranks == "sum":
            kept.append(place)
            continue
        first = parts[twin][0]
        if ranks != "same":
            raise BadInput(_counted_twice(first, name))
        notes.append(f"{name} holds the counts of {first}: one counter, as --ranks same says; left out")
    return kept, notes


def _counted_twice(first: str, second: str) -> str:
    return (
        f"{first} and {second} hold identical counts: each counted the same tokens "
        "(tensor parallel ranks do, and all ranks where no all-to-all is used), "
        "so a sum would count them twice; give one of the two, "
        "or say --ranks same (one counter) or --ranks sum (two recordings)"
    )


def distinct_counts(
    dumps: Sequence[Opened], counts_of: Callable[[Opened], Array], ranks: str | None
) -> list[tuple[Opened, Array, tuple[str, ...]]]:
    """(dump, its counts, its notes) of the dumps to use; the first carries the notes on those left out."""
    counts = [counts_of(found) for found in dumps]
    kept, notes = distinct_parts(
        [(str(found.path), own) for found, own in zip(dumps, counts, strict=True)], ranks
    )
    return [(dumps[place], counts[place], tuple(notes) if place == kept[0] else ()) for place in kept]


def missing_ranks(ranks: Sequence[int], expected: int | None = None) -> str | None:
    """A note that names the ranks that are not there.

    Below the largest, or below `expected` where the dump says how many there were.
    """
    absent = sorted(set(range(max(expected or 0, max(ranks) + 1))) - set(ranks))
    if not absent:
        return None
    given = f"there are files of {spans(sorted(set(ranks)))}"
    return f"{named_spans('rank', absent)} missing ({given}): the counts are partial"


def joint_name(paths: Sequence[Path]) -> str:
    """Several files by one name."""
    return str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


def join_requests(requests: Sequence[tuple[Path, Array]], model: ModelSpec, engine: str) -> Recording:
    """One trace of the ids [token, decoder layer, k] that an engine returned with each of several requests.

    Dense rows must be empty.
    """
    notes: list[str] = []
    kept = [_captured_TLK(path, ids_TLK, model, notes) for path, ids_TLK in requests]
    paths = [path for path, _ in requests]
    names = [path.stem for path in paths]
    count = f"{len(paths)} request{'s' if len(paths) > 1 else ''}"
    return Recording(
        joint_name(paths),
        np.concatenate(kept).transpose(1, 0, 2),
        is_trace=True,
        layer_ids=model.moe_layer_ids,
        sequence_lengths=tuple(map(len, kept)),
        window_names=tuple(names) if len(set(names)) == len(names) else (),
        window_unit="request",
        source=f"{engine}, routed experts of {count}: {joint_name(paths)}",
        notes=tuple(notes),
        logical=True,
    )


def _captured_TLK(path: Path, ids_TLK: Array, model: ModelSpec, notes: list[str]) -> Array:
    """The request's tokens that the engine captured, in the MoE layers; a note on those it did not."""
    check_dense(ids_TLK, model, str(path))
    routed_TLK = ids_TLK[:, list(model.moe_layer_ids)]
    empty_T = (routed_TLK == -1).all(axis=(1, 2))
    if model.top_k > 1:  # of top 1, all zeros may be expert 0
        empty_T |= (routed_TLK == 0).all(axis=(1, 2))
    empty = int(empty_T.sum())
    if empty:
        tokens = f"{empty} of {len(empty_T)} tokens"
        notes.append(f"{path}: {tokens} were not captured or are padding (all 0 or -1); left out")
    if empty_T.all():
        raise BadInput(
            f"{path}: no token has expert ids; was the server started with --enable-return-routed-experts?"
        )
    captured_TLK: Array = routed_TLK[~empty_T]
    return captured_TLK
