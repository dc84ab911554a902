"""What both kinds of DeepEP's kernels share: is it there, the type of ids, fp8 rows as numbers.

Shapes: H hidden.
"""

import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

SCALED = 128  # elements that share one scale


def missing() -> str:
    if importlib.util.find_spec("deep_ep") is None:
        return "DeepEP is not installed (import deep_ep)"
    return ""


def id_dtype(library: Any) -> Any:
    """Of slot ids: releases from 2.0 on may be built for int32, and say so."""
    import torch

    return getattr(library, "topk_idx_t", torch.int64)


def unscaled(rows: "Tensor | tuple[Tensor, Tensor]") -> "Tensor":
    """Rows in bf16; fp8 ones come with a scale for each 128 elements. Small whole numbers come out exact."""
    import torch

    if isinstance(rows, torch.Tensor):
        return rows
    values, scales = rows
    blocks: Tensor = values.to(torch.float32).unflatten(-1, (-1, SCALED)) * scales.unsqueeze(-1)
    return blocks.flatten(-2).to(torch.bfloat16)


def scaled(vectors_TH: "Tensor") -> "tuple[Tensor, Tensor]":
    """bf16 rows as the normal kernels take fp8 ones: values and scales_TX, one for each 128 elements."""
    import torch

    blocks: Tensor = vectors_TH.to(torch.float32).unflatten(1, (-1, SCALED))
    largest = torch.finfo(torch.float8_e4m3fn).max
    scales_TX = blocks.abs().amax(dim=2).clamp(min=1e-4) / largest
    values_TH = (blocks / scales_TX.unsqueeze(2)).flatten(1).to(torch.float8_e4m3fn)
    return values_TH, scales_TX
