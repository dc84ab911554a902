"""Experts in fp8 with scales of blocks, by DeepGEMM where it is installed, as SGLang and vLLM do on Hopper.

Written against DeepGEMM 2.1.1 (`m_grouped_fp8_gemm_nt_contiguous`; a later release keeps the name and names
an argument anew, so that all are given by place). It takes each slot's rows padded to 128, and row numbers
below 0 for padding. Between the GEMMs the activation is cast to fp8 again, which is timed with them. Not run
on a GPU when this was written; shapes are tested with a stand-in.

Shapes: M rows of all slots with padding, Z slots, H width, I intermediate, N columns, K inner elements.
"""

import importlib
import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING

from probes.dispatch.gemm.shapes import ExpertShape, Groups
from probes.dispatch.gemm.torch_bf16 import activated

if TYPE_CHECKING:
    from torch import Tensor, device

NAME = "DeepGEMM"
DTYPES = ("fp8",)
ALIGNMENT = 128  # rows of a block; its `get_mk_alignment_for_contiguous_layout` by default
BLOCK = 128


def available(capability: tuple[int, int] | None) -> str:
    """Why it cannot be used; empty where it can. `capability` None: the CPU.

    Blackwell takes scales of another format, which this does not make.
    """
    if importlib.util.find_spec("deep_gemm") is None:
        return "DeepGEMM is not installed (import deep_gemm)"
    return "" if capability is not None and capability[0] == 9 else "written for GPUs of capability 9"


def make(shape: ExpertShape, groups: Groups, where: "device", seed: int = 0) -> Callable[[], "Tensor"]:
    """The experts of a GPU on the rows that came, as work that can be timed: out_MH."""
    import torch

    library = importlib.import_module("deep_gemm")
    slots, fp8 = len(groups.rows_Z), torch.float8_e4m3fn
    generator = torch.Generator(where).manual_seed(seed)

    def draw(*size: int) -> "Tensor":
        return torch.randn(size, generator=generator, device=where, dtype=torch.bfloat16).to(fp8)

    def scales(*size: int) -> "Tensor":
        return torch.ones(size, device=where)

    def weights(columns: int, inner: int) -> tuple["Tensor", "Tensor"]:
        """Columns first, as the library's name says: nt."""
        return draw(slots, columns, inner), scales(slots, blocks(columns), blocks(inner))

    first, last = weights(shape.first_columns, shape.width), weights(shape.width, shape.intermediate)
    rows = draw(groups.total, shape.width), scales(groups.total, blocks(shape.width))
    scale_MI = scales(groups.total, blocks(shape.intermediate))
    slot_M = torch.as_tensor(groups.slot_M(), dtype=torch.int32, device=where)
    columns_MN = torch.empty((groups.total, shape.first_columns), dtype=torch.bfloat16, device=where)
    out_MH = torch.empty((groups.total, shape.width), dtype=torch.bfloat16, device=where)

    def work() -> "Tensor":
        library.m_grouped_fp8_gemm_nt_contiguous(rows, first, columns_MN, slot_M)
        inner = activated(columns_MN, shape).to(fp8), scale_MI
        library.m_grouped_fp8_gemm_nt_contiguous(inner, last, out_MH, slot_M)
        return out_MH

    return work


def blocks(elements: int) -> int:
    return -(-elements // BLOCK)
