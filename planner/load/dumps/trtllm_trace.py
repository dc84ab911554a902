"""TensorRT-LLM: the ids that some versions write beside the counts, token_selected_experts_rank*.safetensors, as a trace.

Shapes: L layers, T tokens, K = top_k.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from planner.load.dumps.tensors import read_safetensors
from planner.load.formats import Array
from planner.load.profile import Counts


def read_trace(
    folder: Path, ranks: Iterable[int], iterations: Sequence[int], layers: Sequence[int], counts_WLE: Counts
) -> tuple[Array, tuple[int, ...]] | str | None:
    """(ids_LTK, tokens of each iteration), ranks in order within an iteration; a note where the ids do not fit the counts; None where there are none."""
    paths = [folder / f"token_selected_experts_rank{rank}.safetensors" for rank in sorted(ranks)]
    if not any(path.is_file() for path in paths):
        return None
    absent = [path for path in paths if not path.is_file()]
    if absent:
        return f"{absent[0]} is missing, so the other ranks' ids are not used"
    by_rank = [read_safetensors(path) for path in paths]
    parts, lengths = [], []
    for iteration, counts_LE in zip(iterations, counts_WLE, strict=True):
        tokens = 0
        for path, arrays in zip(paths, by_rank, strict=True):
            found = [arrays.get(f"{iteration}_{layer}") for layer in layers]
            ids_LTK = [
                ids_TK
                for ids_TK in found
                if ids_TK is not None and ids_TK.ndim == 2 and ids_TK.dtype.kind in "iu"
            ]
            if not any(ids_TK is not None for ids_TK in found):
                continue
            if len(ids_LTK) < len(layers) or len({ids_TK.shape for ids_TK in ids_LTK}) > 1:
                return f"{path}: iteration {iteration} does not have the same tokens in every layer, so the ids are not used"
            tokens += len(ids_LTK[0])
            parts.append(np.stack(ids_LTK))
        if tokens and (counts_LE.sum(axis=1) != tokens * parts[-1].shape[2]).any():
            return f"{folder}: the ids of iteration {iteration} are not those that were counted, so they are not used"
        lengths.append(tokens)
    if min(lengths) == 0 or len({part.shape[2] for part in parts}) > 1:
        return f"{folder}: the ids do not cover every iteration, so they are not used"
    return np.concatenate(parts, axis=1), tuple(lengths)
