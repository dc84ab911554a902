"""The ledger of a GPU's memory: what is exact, read or assumed, and the floor for the KV cache."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from planner.base import Infeasible
from planner.cost import ledger, memory_notes, within_floor
from planner.cost.memory import low_latency_bytes
from planner.model import find_model
from planner.problem import Problem
from tests.planner.engines.examples import TINY, machine, question


def sizes(problem: Problem, engine: str | None) -> dict[str, float]:
    return {line.name: line.size_bytes for line in ledger(problem, engine).lines}


def test_lines_and_what_is_left_are_the_whole_memory() -> None:
    """Nothing is counted twice, and each line says what it rests on."""
    problem = question(TINY, machine(8), 8)
    found = ledger(problem, "sglang")
    assert sum(line.size_bytes for line in found.lines) + found.kv_left_bytes == pytest.approx(
        found.memory_bytes
    )
    assert {line.basis.split(":")[0] for line in found.lines} == {"exact", "read", "assumed"}
    assert found.lines[0].size_bytes + found.lines[1].size_bytes == pytest.approx(
        problem.slots_per_gpu * problem.slot_bytes
    )


def test_the_low_latency_buffer_of_a_step_by_hand() -> None:
    """2 slots, 1 token of 128 elements: combine is 260 bytes a message, dispatch 272; two sends of 520, two
    receives of 544, two signals of 128, one block.
    """
    assert low_latency_bytes(1, 128, 2) == 2 * (520 + 544 + 128) // 128 * 128 + 128


@pytest.mark.parametrize(
    ("transport", "engine", "size_bytes"),
    [
        ("rank", "vllm", 2**30),
        ("node", "vllm", 2**31),
        ("allgather", "sglang", 2 * 8 * 128 * 2048 * 2),
        ("slot", None, low_latency_bytes(128, 2048, 72)),
    ],
)
def test_each_transport_has_its_buffers(transport: str, engine: str, size_bytes: float) -> None:
    """Message by message, one buffer a network, or every rank's tokens."""
    problem = question(TINY, machine(8), 8)
    assert (
        sizes(replace(problem, workload=replace(problem.workload, transport=transport)), engine)["all_to_all"]
        == size_bytes
    )


def test_sglang_sizes_its_buffer_for_128_tokens_at_least() -> None:
    """A smaller step does not shrink it, a larger one grows it."""
    small, large = (
        sizes(question(TINY, machine(8), 8, tokens_per_rank=tokens), "sglang")["all_to_all"]
        for tokens in (8, 256)
    )
    assert (small, large) == (low_latency_bytes(128, 2048, 72), low_latency_bytes(256, 2048, 72))


@pytest.mark.parametrize(("width", "sent"), [(2048, 2048), (2880, 3072), (3584, 4096)])
def test_vllm_pads_tokens_to_the_next_kernel(width: int, sent: int) -> None:
    """Its buffer holds what it sends, and no NVLink buffer lies beside it: its launches say so."""
    problem = question(replace(TINY, dispatch_width=width), machine(8), 8)
    assert sizes(problem, "vllm")["all_to_all"] == low_latency_bytes(128, sent, 72)


def test_other_weights_of_deepseek_v3_are_near_what_is_known() -> None:
    """671 billion parameters without 58 x 256 experts are about 17 billion in fp8, and embeddings are held in
    bf16.
    """
    found = sizes(question(find_model("deepseek-v3"), machine(8, 8, 8, 8), 32), None)["other_weights"]
    assert found == pytest.approx(19e9, rel=0.15)


def resolve(floor_bytes: float) -> Callable[[int], Problem]:
    return lambda redundant: replace(question(TINY, machine(8), redundant), kv_floor_bytes=floor_bytes)


def test_a_floor_names_the_redundancy_that_would_fit() -> None:
    """Or says that none would."""
    left = [ledger(question(TINY, machine(8), redundant), None).kv_left_bytes for redundant in (0, 8)]
    assert within_floor(resolve(left[1]), None)(8).redundant == 8
    with pytest.raises(Infeasible, match=r"other weights .* \(assumed\).*--redundant 8 would fit"):
        within_floor(resolve(left[1]), None)(16)
    with pytest.raises(Infeasible, match="no number of redundant experts fits"):
        within_floor(resolve(left[0] + 1e6), None)(8)


def test_a_floor_and_a_promise_that_contradict_are_both_named() -> None:
    """8 GPUs need 7 redundant experts to be joined: with 8 the floor is missed, and fewer would break the
    promise.
    """
    left = ledger(question(TINY, machine(8), 0), None).kv_left_bytes
    problem_of = within_floor(lambda redundant: replace(resolve(left)(redundant), resplittable=True), None)
    with pytest.raises(
        Infeasible,
        match=r"less than the floor of .*: use more GPUs or a lower floor, "
        r"for fewer .* do not do: R = 0 cannot join 8 GPUs",
    ):
        problem_of(8)


def test_without_a_floor_what_is_assumed_refuses_nothing() -> None:
    """A note says that it does not fit."""
    crowded = question(replace(TINY, hidden=2**18), machine(8), 8)
    assert within_floor(lambda _: crowded, None)(8) is crowded
    assert "too small for weights and buffers" in memory_notes(crowded, None)[0]
    assert memory_notes(question(TINY, machine(8), 8), None) == ()
