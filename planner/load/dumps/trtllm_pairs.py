"""TensorRT-LLM: which experts were chosen together, cooccurrence_rank*.safetensors that some versions write beside the counts.

Shapes: L layers, E experts.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from planner.load.dumps.tensors import read_safetensors
from planner.load.formats import Array


def read_pairs(
    folder: Path, ranks: Iterable[int], iterations: Sequence[int], layers: Sequence[int], experts: int
) -> Array | str | None:
    """together_LEE over all ranks and iterations; a note where it cannot be used; None where there is none."""
    paths = [folder / f"cooccurrence_rank{rank}.safetensors" for rank in sorted(ranks)]
    if not any(path.is_file() for path in paths):
        return None
    absent = [path for path in paths if not path.is_file()]
    if absent:
        return f"{absent[0]} is missing, so the other ranks' co-occurrence counts are not used"
    together_LEE = np.zeros((len(layers), experts, experts), dtype=np.int64)
    for path in paths:
        arrays = read_safetensors(path)
        for row, layer in enumerate(layers):
            for iteration in iterations:
                found_EE = arrays.get(f"{iteration}_{layer}")
                if found_EE is None:
                    continue
                if found_EE.shape != (experts, experts) or found_EE.dtype.kind not in "iu":
                    got = f"iteration {iteration}, layer {layer} is {found_EE.dtype} {list(found_EE.shape)}"
                    return f"{path}: {got}, not whole numbers [{experts}, {experts}]; co-occurrence counts are not used"
                together_LEE[row] += found_EE
    return together_LEE
