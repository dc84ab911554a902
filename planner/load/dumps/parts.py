"""Parts of one recording: which ranks are there, which count the same tokens, and several requests as one trace.

Shapes: L layers, T tokens, K = top_k.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from planner.base import BadInput
from planner.load.formats import Array, Recording
from planner.load.rows import spans
from planner.model import ModelSpec


def distinct_parts(parts: Sequence[tuple[str, Array]], ranks: str | None) -> tuple[list[int], list[str]]:
    """(positions of the parts to use, notes), given each part's name and counts. BadInput where two hold the same counts and `ranks` does not say why.

    `ranks`: 'same', identical parts are one counter, seen by several ranks: the first is used; 'sum', they are parts that happen to agree: all are.
    """
    kept: list[int] = []
    notes: list[str] = []
    alike: dict[
        tuple[tuple[int, ...], float], list[int]
    ] = {}  # parts of one shape and sum: the only ones that can be identical
    for place, (name, counts) in enumerate(parts):
        others = alike.setdefault((counts.shape, float(counts.sum(dtype=np.float64))), [])
        twin = next(
            (other for other in others if counts.any() and np.array_equal(counts, parts[other][1])), None
        )
        others.append(place)
        if twin is None or ranks == "sum":
            kept.append(place)
        elif ranks == "same":
            notes.append(
                f"{name} holds the counts of {parts[twin][0]}: one counter, as --ranks same says; left out"
            )
        else:
            raise BadInput(
                f"{parts[twin][0]} and {name} hold identical counts: each counted the same tokens (tensor parallel ranks do, and all ranks where no "
                "all-to-all is used), so a sum would count them twice; give one of the two, or say --ranks same (one counter) or --ranks sum (two recordings)"
            )
    return kept, notes


def missing_ranks(ranks: Sequence[int], expected: int | None = None) -> str | None:
    """A note that names the ranks that are not there: below the largest, or below `expected` where the dump says how many there were."""
    absent = sorted(set(range(max(expected or 0, max(ranks) + 1))) - set(ranks))
    if not absent:
        return None
    return f"rank{'s' if len(absent) > 1 else ''} {spans(absent)} missing (there are files of {spans(sorted(set(ranks)))}): the counts are partial"


def join_requests(requests: Sequence[tuple[Path, Array]], model: ModelSpec, engine: str) -> Recording:
    """One trace of the ids [token, decoder layer, k] that an engine returned with each of several requests. Dense rows must be empty."""
    notes: list[str] = []
    kept = []
    dense = [layer for layer in range(model.layers) if layer not in model.moe_layer_ids]
    for path, ids_TLK in requests:
        _check_dense(path, ids_TLK, dense, model)
        routed_TLK = ids_TLK[:, list(model.moe_layer_ids)]
        empty_T = (routed_TLK == -1).all(axis=(1, 2)) | (
            (routed_TLK == 0).all(axis=(1, 2)) & (model.top_k > 1)
        )
        if empty_T.any():
            notes.append(
                f"{path}: {int(empty_T.sum())} of {len(empty_T)} tokens were not captured or are padding (all 0 or -1); left out"
            )
        if empty_T.all():
            raise BadInput(
                f"{path}: no token has expert ids; was the server started with --enable-return-routed-experts?"
            )
        kept.append((path, routed_TLK[~empty_T]))
    names = [path.stem for path, _ in kept]
    return Recording(
        _name([path for path, _ in kept]),
        np.concatenate([ids_TLK for _, ids_TLK in kept]).transpose(1, 0, 2),
        is_trace=True,
        layer_ids=model.moe_layer_ids,
        sequence_lengths=tuple(len(ids_TLK) for _, ids_TLK in kept),
        window_names=tuple(names) if len(set(names)) == len(names) else (),
        window_unit="request",
        source=f"{engine}, routed experts of {len(kept)} request{'s' if len(kept) > 1 else ''}: {_name([path for path, _ in kept])}",
        notes=tuple(notes),
        logical=True,
    )


def _check_dense(path: Path, ids_TLK: Array, dense: list[int], model: ModelSpec) -> None:
    filled = [layer for layer in dense if ids_TLK[:, layer].any() and (ids_TLK[:, layer] != -1).any()]
    if filled:
        raise BadInput(
            f"{path}: decoder layer {filled[0]} of {model.name} is dense, but the file has expert ids there; "
            f"the file was recorded on another model, or its axes are not [token, {model.layers} layers, {model.top_k}]"
        )


def _name(paths: Sequence[Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
