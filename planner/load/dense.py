"""Ids of experts where a model has none: the trace is of another model, or was read along other axes.

Shapes: T tokens, D decoder layers, K = top_k.
"""

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.model import ModelSpec


def check_dense(ids_TDK: npt.NDArray[np.integer], model: ModelSpec, where: str) -> None:
    """BadInput where a dense layer's row is not empty, which is all 0 or all -1."""
    for layer in range(model.layers):
        ids_TK = ids_TDK[:, layer]
        if layer not in model.moe_layer_ids and ids_TK.any() and (ids_TK != -1).any():
            axes = f"[token, {model.layers} layers, {model.top_k}]"
            raise BadInput(
                f"{where}: decoder layer {layer} of {model.name} is dense, but there are expert ids of it; "
                f"they are of another model, or their axes are not {axes}"
            )
