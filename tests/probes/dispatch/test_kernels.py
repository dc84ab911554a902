"""Engines' kernels, with stand-ins for them: which are taken, what they are given, what comes back."""

import importlib.util
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from planner.base import BadInput
from probes.dispatch.kernels import deepep_low_latency, deepep_normal, nccl_ep
from probes.dispatch.kernels.registry import choose, libraries
from probes.dispatch.kernels.size import Brought, Size
from probes.ranks.party import Party, Task

if TYPE_CHECKING:  # torch comes with it
    from probes.ranks.wire import Wire

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

SIZE = Size(gpus=4, slots=12, tokens=6, width=256, top_k=3)
ALL = (deepep_low_latency, deepep_normal, nccl_ep)


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.probes.dispatch import fake_kernels

    for name, module in {"deep_ep": fake_kernels.deep_ep(), **fake_kernels.nccl_ep()}.items():
        monkeypatch.setitem(sys.modules, name, module)


def test_every_module_is_found_by_name() -> None:
    assert list(libraries()) == ["DeepEP low-latency", "DeepEP normal", "NCCL EP low-latency"]


def wrong_of(kernels: Any, size: Size) -> list[str]:
    """What each of four virtual ranks has to say against a pass through the kernels; empty: nothing.

    Slot p multiplies a row by p + 1.
    """
    import torch

    from probes.ranks.virtual import run_virtual

    def work(wire: "Wire") -> str:
        generator = torch.Generator().manual_seed(wire.rank)
        draws = [torch.randperm(size.slots, generator=generator)[: size.top_k] for _ in range(size.tokens)]
        slot_TK = torch.stack(draws)
        vectors_TH = torch.randint(-2, 3, (size.tokens, size.width), generator=generator).bfloat16()
        gate_TK = torch.randint(1, 4, slot_TK.shape, generator=generator).float()
        passes = kernels.open(size, wire).passes(Brought(vectors_TH, slot_TK, gate_TK))
        arrived = passes.dispatch()
        first = wire.rank * size.slots_per_gpu
        results = passes.compute(arrived, lambda slot, rows: rows * (first + slot + 1))
        sums_TH = passes.combine(arrived, results)
        wanted_TH = vectors_TH.float() * (gate_TK * (slot_TK + 1)).sum(dim=1, keepdim=True)
        all_slots = " ".join(wire.gather(" ".join(map(str, slot_TK.flatten().tolist())))).split()
        counts = [all_slots.count(str(first + slot)) for slot in range(size.slots_per_gpu)]
        wrong = [] if torch.equal(sums_TH.float(), wanted_TH) else [f"sums of rank {wire.rank}"]
        return " ".join(wrong if passes.arrived_Z(arrived) == counts else [*wrong, f"counts {wire.rank}"])

    return run_virtual(Task(Party((0,) * 4, "cpu", 60.0), work))


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize("kernels", ALL)
def test_every_token_comes_back_with_its_weighted_sum(kernels: Any) -> None:
    """And every slot counts what it was sent."""
    assert wrong_of(kernels, SIZE) == [""] * 4


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize("kernels", [deepep_low_latency, deepep_normal])
def test_fp8_carries_small_whole_numbers_exactly(kernels: Any) -> None:
    assert wrong_of(kernels, replace(SIZE, dispatch_dtype="fp8")) == [""] * 4


def test_buffers_of_the_normal_kernels_hold_both_configurations() -> None:
    """The larger hint of dispatch and combine, for bf16 rows."""
    from tests.probes.dispatch.fake_kernels import Buffer

    assert deepep_normal.buffer_bytes(Buffer, SIZE) == (3 * 512 * 4, 0)
    assert deepep_normal.buffer_bytes(Buffer, replace(SIZE, gpus=16)) == (3 * 512 * 16, 3 * 512)


@pytest.mark.parametrize(("tokens", "most"), [(1, 4), (4, 4), (6, 8), (128, 128)])
def test_low_latency_kernels_are_told_a_multiple_of_four(tokens: int, most: int) -> None:
    assert replace(SIZE, tokens=tokens).most_tokens == most


@pytest.mark.parametrize(
    ("kernels", "size", "why"),
    [
        (deepep_low_latency, replace(SIZE, width=7168), ""),
        (deepep_low_latency, replace(SIZE, width=7000), "elements, not 7000"),
        (deepep_low_latency, replace(SIZE, width=7168, top_k=12), "at most 11 experts a token, not 12"),
        (deepep_low_latency, replace(SIZE, width=7168, tokens=600), "NVSHMEM_QP_DEPTH=1202, it is 1024"),
        (deepep_normal, replace(SIZE, gpus=12), "no configuration for 12 GPUs"),
        (deepep_normal, replace(SIZE, width=200, dispatch_dtype="fp8"), "multiple of 128 elements, not 200"),
        (nccl_ep, replace(SIZE, dispatch_dtype="fp8"), "sends bf16"),
    ],
)
def test_what_a_library_does_not_take(kernels: Any, size: Size, why: str) -> None:
    """By the limits of the release it was written against."""
    assert (kernels.refuses(size) == "") == (why == "")
    assert why in kernels.refuses(size)


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize(
    ("transport", "gpus", "name"),
    [
        ("slot", 16, "DeepEP low-latency"),
        ("node", 16, "DeepEP normal"),
        ("rank", 8, "DeepEP normal"),
        ("rank", 16, "torch"),
        ("node", 8, "torch"),
        ("allgather", 16, "torch"),
    ],
)
def test_kernels_are_those_that_send_as_the_plan_was_judged(
    transport: str, gpus: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deepep_low_latency, "available", str)
    monkeypatch.setattr(deepep_normal, "available", str)
    size = Size(gpus, 4 * gpus, 64, 7168, 8)
    assert choose("auto", transport, size, "cuda")[0] == name


def test_without_a_library_torch_sends_and_the_reason_is_said() -> None:
    """Where it was asked for by name, that is refused."""
    size = Size(16, 64, 64, 7168, 8)
    name, notes = choose("auto", "slot", size, "cuda")
    assert name == "torch"
    assert notes[0] == "not sent with DeepEP low-latency: DeepEP is not installed (import deep_ep)"
    assert choose("auto", "slot", size, "cpu") == ("torch", ())
    with pytest.raises(
        BadInput, match=r"^--kernels nccl-ep: NCCL EP low-latency: .*nccl.*; use --kernels torch"
    ):
        choose("nccl-ep", "slot", size, "cuda")
    with pytest.raises(
        BadInput, match=r"^--kernels deepep: it has no kernels that send as transport 'allgather'"
    ):
        choose("deepep", "allgather", size, "cuda")
    with pytest.raises(BadInput, match="it needs GPUs"):
        choose("deepep", "slot", size, "cpu")
