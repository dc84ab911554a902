"""TensorRT-LLM: what some versions write beside a rank's counts: pairs of experts, and the ids of tokens.

They are cooccurrence_rank*.safetensors and token_selected_experts_rank*.safetensors, keyed as the counts are.
Shapes: W iterations, L layers, E experts, T tokens, K = top_k.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from planner.load.dumps.tensors import read_safetensors
from planner.load.profile import Counts
from planner.load.recording import Array


@dataclass(frozen=True, eq=False)
class Counted:
    """The counts of all ranks, and how many pairs of iteration and layer no rank recorded."""

    counts_WLE: Counts
    iterations: list[int]
    layers: list[int]
    missing: int

    @property
    def gaps(self) -> str | None:
        pairs = f"{self.missing} pairs of iteration and layer"
        return f"{pairs} were not recorded by any rank; they count 0" if self.missing else None


def read_pairs(folder: Path, ranks: Iterable[int], counted: Counted) -> Array | str | None:
    """together_LEE of all ranks and iterations; a note where it cannot be used; None where there is none."""
    paths = _files(folder, "cooccurrence", ranks)
    if not paths:
        return None
    if absent := _absent(paths):
        return f"{absent} is missing, so the other ranks' co-occurrence counts are not used"
    experts = counted.counts_WLE.shape[2]
    together_LEE = np.zeros((len(counted.layers), experts, experts), dtype=np.int64)
    for path in paths:
        arrays = read_safetensors(path)
        for row, layer in enumerate(counted.layers):
            for iteration in counted.iterations:
                found_EE = arrays.get(f"{iteration}_{layer}")
                if found_EE is None:
                    continue
                if found_EE.shape != (experts, experts) or found_EE.dtype.kind not in "iu":
                    got = f"iteration {iteration}, layer {layer} is {found_EE.dtype} {list(found_EE.shape)}"
                    expected = f"not whole numbers [{experts}, {experts}]"
                    return f"{path}: {got}, {expected}; co-occurrence counts are not used"
                together_LEE[row] += found_EE
    return together_LEE


def read_trace(
    folder: Path, ranks: Iterable[int], counted: Counted
) -> tuple[Array, tuple[int, ...]] | str | None:
    """(ids_LTK, tokens of each iteration), ranks in order within an iteration.

    A note where the ids do not fit the counts; None where there are none.
    """
    paths = _files(folder, "token_selected_experts", ranks)
    if not paths:
        return None
    if absent := _absent(paths):
        return f"{absent} is missing, so the other ranks' ids are not used"
    by_rank = {path: read_safetensors(path) for path in paths}
    parts: list[Array] = []
    lengths = []
    for iteration, counts_LE in zip(counted.iterations, counted.counts_WLE, strict=True):
        found = _ids_of_ranks(by_rank, iteration, counted.layers)
        if isinstance(found, str):
            return found
        tokens = sum(ids_LTK.shape[1] for ids_LTK in found)
        if tokens and (counts_LE.sum(axis=1) != tokens * found[-1].shape[2]).any():
            other = f"the ids of iteration {iteration} are not those that were counted"
            return f"{folder}: {other}, so they are not used"
        parts += found
        lengths.append(tokens)
    if min(lengths) == 0 or len({part.shape[2] for part in parts}) > 1:
        return f"{folder}: the ids do not cover every iteration, so they are not used"
    return np.concatenate(parts, axis=1), tuple(lengths)


def _ids_of_ranks(
    by_rank: Mapping[Path, Mapping[str, Array]], iteration: int, layers: Sequence[int]
) -> list[Array] | str:
    """ids_LTK of each rank that has any in this iteration; a note where they are not of the same tokens."""
    parts = []
    for path, arrays in by_rank.items():
        keys = [f"{iteration}_{layer}" for layer in layers]
        found = [arrays[key] for key in keys if key in arrays]
        if not found:
            continue
        are_ids = all(ids_TK.ndim == 2 and ids_TK.dtype.kind in "iu" for ids_TK in found)
        if not are_ids or len(found) < len(layers) or len({ids_TK.shape for ids_TK in found}) > 1:
            torn = f"iteration {iteration} does not have the same tokens in every layer"
            return f"{path}: {torn}, so the ids are not used"
        parts.append(np.stack(found))
    return parts


def _files(folder: Path, kind: str, ranks: Iterable[int]) -> list[Path]:
    """The file of each rank, there or not; none where no rank has one."""
    paths = [folder / f"{kind}_rank{rank}.safetensors" for rank in sorted(ranks)]
    return paths if any(path.is_file() for path in paths) else []


def _absent(paths: Sequence[Path]) -> Path | None:
    return next((path for path in paths if not path.is_file()), None)
