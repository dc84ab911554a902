"""Experts in bf16 by torch's grouped GEMM; where torch has none, a GEMM for each slot. Imports torch late.

Written against torch 2.13 (`torch.nn.functional.grouped_mm`) and 2.8 (`torch._grouped_mm`). Tested on the
CPU; not run on a GPU when this was written.

Shapes: M rows of all slots, Z slots, H width, I intermediate, N columns.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from probes.dispatch.gemm.shapes import ExpertShape, Groups

if TYPE_CHECKING:
    from torch import Tensor, device

NAME = "torch bf16"
DTYPES = ("bf16",)
ALIGNMENT = 1

Multiply = Callable[["Tensor", "Tensor"], "Tensor"]  # rows_MK, weights_ZKN


def available(capability: tuple[int, int] | None) -> str:
    """Why it cannot be used; empty where it can. `capability` None: the CPU."""
    return "" if capability is None or capability >= (8, 0) else "bf16 GEMMs need a GPU of capability 8.0"


def make(shape: ExpertShape, groups: Groups, where: "device", seed: int = 0) -> Callable[[], "Tensor"]:
    """The experts of a GPU on the rows that came, as work that can be timed: out_MH."""
    import torch

    generator = torch.Generator(where).manual_seed(seed)

    def draw(*size: int) -> "Tensor":
        drawn = torch.randn(size, generator=generator, device=where, dtype=torch.bfloat16)
        return drawn.mul_(float(size[-2]) ** -0.5)

    slots = len(groups.rows_Z)
    rows_MH = draw(groups.total, shape.width)
    first_ZHN = draw(slots, shape.width, shape.first_columns)
    last_ZIH = draw(slots, shape.intermediate, shape.width)
    multiply = multiply_by(groups, where)
    return lambda: experts(rows_MH, first_ZHN, last_ZIH, shape, multiply)


def experts(
    rows_MH: "Tensor", first_ZHN: "Tensor", last_ZIH: "Tensor", shape: ExpertShape, multiply: Multiply
) -> "Tensor":
    """Gate and up, the activation between, down."""
    return multiply(activated(multiply(rows_MH, first_ZHN), shape), last_ZIH)


def activated(columns_MN: "Tensor", shape: ExpertShape) -> "Tensor":
    """SiLU of the gate times up; of up alone where the expert has no gate."""
    from torch.nn.functional import silu

    if shape.matrices == 2:
        only_MI: Tensor = silu(columns_MN)
        return only_MI
    gate_MI, up_MI = columns_MN.split(shape.intermediate, dim=1)
    both_MI: Tensor = silu(gate_MI) * up_MI
    return both_MI


def multiply_by(groups: Groups, where: "device") -> Multiply:
    """The grouped GEMM of this torch."""
    import torch

    grouped = _grouped()
    if grouped is None:
        return lambda rows_MK, weights_ZKN: by_slot(rows_MK, weights_ZKN, groups)
    ends_Z = torch.as_tensor(groups.ends_Z, dtype=torch.int32, device=where)
    return lambda rows_MK, weights_ZKN: grouped(rows_MK, weights_ZKN, offs=ends_Z)


def by_slot(rows_MK: "Tensor", weights_ZKN: "Tensor", groups: Groups) -> "Tensor":
    """One GEMM after the other."""
    import torch

    parts = rows_MK.split(groups.padded_Z.tolist())
    return torch.cat([part @ weight for part, weight in zip(parts, weights_ZKN, strict=True)])


def _grouped() -> Callable[..., Any] | None:
    import torch

    public = getattr(torch.nn.functional, "grouped_mm", None)
    return public or getattr(torch, "_grouped_mm", None)
