"""Experts in fp8 (e4m3, a scale a row and a column) by torch's scaled grouped GEMM. Imports torch late.

Written against torch 2.13's `torch._scaled_grouped_mm`, which takes row-wise scales on capability 9.0 alone.
Models scale blocks of 128, so that this reads fewer scales than they do. Between the GEMMs the activation is
cast to fp8 again, which is timed with them. Not run on a GPU when this was written; shapes are tested with a
stand-in.

Shapes: M rows of all slots, Z slots, H width, I intermediate, N columns, K inner elements.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from probes.dispatch.gemm.shapes import ExpertShape, Groups
from probes.dispatch.gemm.torch_bf16 import activated

if TYPE_CHECKING:
    from torch import Tensor, device

NAME = "torch fp8"
DTYPES = ("fp8",)
ALIGNMENT = 16


def available(capability: tuple[int, int] | None) -> str:
    """Why it cannot be used; empty where it can. `capability` None: the CPU."""
    import torch

    if not hasattr(torch, "_scaled_grouped_mm"):
        return f"torch {torch.__version__} has no scaled grouped GEMM"
    return "" if capability == (9, 0) else "torch's grouped GEMM takes row-wise fp8 on capability 9.0 alone"


def make(shape: ExpertShape, groups: Groups, where: "device", seed: int = 0) -> Callable[[], "Tensor"]:
    """The experts of a GPU on the rows that came, as work that can be timed: out_MH."""
    import torch

    slots, fp8 = len(groups.rows_Z), torch.float8_e4m3fn
    generator = torch.Generator(where).manual_seed(seed)

    def draw(*size: int) -> "Tensor":
        return torch.randn(size, generator=generator, device=where, dtype=torch.bfloat16).to(fp8)

    # the second operand has to lie column by column
    first_ZHN = draw(slots, shape.first_columns, shape.width).transpose(1, 2)
    last_ZIH = draw(slots, shape.width, shape.intermediate).transpose(1, 2)
    rows_MH = draw(groups.total, shape.width)
    ends_Z = torch.as_tensor(groups.ends_Z, dtype=torch.int32, device=where)
    scale_M = torch.ones(groups.total, device=where)
    scales = {
        columns: torch.ones((slots, columns), device=where) for columns in (shape.first_columns, shape.width)
    }

    def multiply(rows_MK: "Tensor", weights_ZKN: "Tensor") -> "Tensor":
        scale_ZN = scales[weights_ZKN.shape[2]]
        return torch._scaled_grouped_mm(  # noqa: SLF001 - torch has no public name for it yet
            rows_MK, weights_ZKN, scale_M, scale_ZN,
            offs=ends_Z, out_dtype=torch.bfloat16, use_fast_accum=True,
        )  # fmt: skip

    return lambda: multiply(activated(multiply(rows_MH, first_ZHN), shape).to(fp8), last_ZIH)
