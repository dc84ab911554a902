"""Expert compute of the model's shapes: rows and padding, work and bytes, and results against one by one."""

import importlib.util
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from planner.model import find_model
from probes.dispatch.gemm import deep_gemm, torch_bf16, torch_fp8
from probes.dispatch.gemm.choose import choose
from probes.dispatch.gemm.shapes import ExpertShape, Groups, shape_of

if TYPE_CHECKING:
    from torch import Tensor

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
SMALL = ExpertShape(32, 48, 3, "bf16", 2.0 * 3 * 32 * 48)


def groups_of(*rows: int, alignment: int = 1) -> Groups:
    return Groups(np.array(rows), alignment)


def test_every_slot_begins_at_a_multiple_of_the_alignment() -> None:
    """A slot without rows takes no room; padding belongs to no slot."""
    groups = groups_of(3, 0, 4, 5, alignment=4)
    assert groups.padded_Z.tolist() == [4, 0, 4, 8]
    assert groups.ends_Z.tolist() == [4, 4, 8, 16]
    assert groups.slot_M().tolist() == [0, 0, 0, -1, 2, 2, 2, 2, 3, 3, 3, 3, 3, -1, -1, -1]
    assert groups_of(3, 1).slot_M().tolist() == [0, 0, 0, 1]


def test_work_and_bytes_are_those_of_the_cost_model() -> None:
    """DeepSeek-V3: 44 million weights an expert; padding does no work that is asked for."""
    model = find_model("deepseek-v3")
    shape, groups = shape_of(model), groups_of(10, 0, 20, alignment=128)
    assert groups.flops(shape) == pytest.approx(30 * model.flops_per_assignment)
    assert groups.read_bytes(shape) == pytest.approx(2 * model.expert_bytes)
    assert (shape.width, shape.first_columns, shape.intermediate) == (7168, 4096, 2048)


@needs_torch
@pytest.mark.parametrize("matrices", [2, 3])
def test_grouped_experts_equal_one_expert_after_the_other(matrices: int) -> None:
    """Of uneven slots, one of them empty; in float32 on the very same weights."""
    import torch

    shape = ExpertShape(32, 48, matrices, "bf16", 0.0)
    groups = groups_of(3, 0, 4, 5)
    generator = torch.Generator().manual_seed(1)
    rows_MH = torch.randn((12, 32), generator=generator).bfloat16()
    first_ZHN = torch.randn((4, 32, shape.first_columns), generator=generator).bfloat16() / 6
    last_ZIH = torch.randn((4, 48, 32), generator=generator).bfloat16() / 7
    multiply = torch_bf16.multiply_by(groups, torch.device("cpu"))
    out_MH = torch_bf16.experts(rows_MH, first_ZHN, last_ZIH, shape, multiply)
    for row, slot in enumerate(groups.slot_M()):
        inner = rows_MH[row].float() @ first_ZHN[slot].float()
        gate, up = (inner, torch.ones(48)) if matrices == 2 else inner.split(48)
        wanted = (torch.nn.functional.silu(gate) * up) @ last_ZIH[slot].float()
        torch.testing.assert_close(out_MH[row].float(), wanted, rtol=0.05, atol=0.02)


@needs_torch
def test_a_torch_without_grouped_gemms_multiplies_slot_by_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives the same."""
    import torch

    groups = groups_of(2, 0, 3)
    whole_MH = torch_bf16.make(SMALL, groups, torch.device("cpu"))()
    monkeypatch.setattr(torch_bf16, "_grouped", lambda: None)
    torch.testing.assert_close(torch_bf16.make(SMALL, groups, torch.device("cpu"))(), whole_MH)


@needs_torch
def test_the_scaled_gemm_gets_what_torch_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Second operands column by column, a scale a row and a column, ends as int32."""
    import torch

    calls: list[tuple[Any, ...]] = []

    def stand_in(
        rows: "Tensor", weights: "Tensor", scale_a: "Tensor", scale_b: "Tensor", **how: Any
    ) -> "Tensor":
        calls.append(
            (rows.dtype, weights.stride(1), tuple(scale_a.shape), tuple(scale_b.shape), how["offs"].dtype)
        )
        return torch.zeros((len(rows), weights.shape[2]), dtype=how["out_dtype"])

    monkeypatch.setattr(torch, "_scaled_grouped_mm", stand_in, raising=False)
    out_MH = torch_fp8.make(SMALL, groups_of(5, 20, alignment=torch_fp8.ALIGNMENT), torch.device("cpu"))()
    assert out_MH.shape == (48, 32)
    assert calls == [
        (torch.float8_e4m3fn, 1, (48,), (2, 96), torch.int32),
        (torch.float8_e4m3fn, 1, (48,), (2, 32), torch.int32),
    ]


@needs_torch
def test_deep_gemm_gets_what_it_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own checks in 2.1.1: e4m3 with block scales, results in bf16, the slot of each row as int32."""
    import torch

    library = ModuleType("deep_gemm")
    inner: list[int] = []

    def stand_in(
        a: "tuple[Tensor, Tensor]", b: "tuple[Tensor, Tensor]", d: "Tensor", m_indices: "Tensor"
    ) -> None:
        (m, k), (slots, n, k_) = a[0].shape, b[0].shape
        assert (k, (m, n), m) == (k_, tuple(d.shape), len(m_indices))
        assert a[1].shape == (m, -(-k // 128))
        assert b[1].shape == (slots, -(-n // 128), -(-k // 128))
        assert [a[0].dtype, b[0].dtype, d.dtype] == [torch.float8_e4m3fn, torch.float8_e4m3fn, torch.bfloat16]
        assert m_indices.dtype == torch.int32
        assert set(m_indices.tolist()) == {-1, 0, 1}
        inner.append(k)
        d.zero_()

    library.m_grouped_fp8_gemm_nt_contiguous = stand_in  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "deep_gemm", library)
    shape = ExpertShape(256, 192, 3, "fp8", 0.0)
    out_MH = deep_gemm.make(shape, groups_of(5, 130, alignment=deep_gemm.ALIGNMENT), torch.device("cpu"))()
    assert (out_MH.shape, inner) == ((384, 256), [256, 192])


@needs_torch
def test_the_library_is_chosen_by_weights_and_gpu() -> None:
    """And it is said why another was not taken, or that the bytes are others."""
    library, notes = choose("fp8", (9, 0))
    assert library.NAME == "torch fp8"
    assert notes[1].startswith("not with DeepGEMM: DeepGEMM is not installed")
    assert choose("bf16", (8, 0))[0].NAME == "torch bf16"
    library, notes = choose("mxfp4", (10, 0))
    assert library.NAME == "torch bf16"
    assert notes[-1] == "mxfp4 weights were timed as bf16, which reads other bytes"
