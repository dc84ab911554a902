"""Questions that have no answer are refused in one line, with the nearest that have one."""

import re
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from planner.base import BadInput, Infeasible
from planner.problem import Problem, Workload, check_slots
from planner.problem.redundancy import LARGEST_NAMED_EP
from tests.planner.engines.examples import machine
from tests.planner.small import question, small_model


def refusal(experts: int, gpus: int, redundant: int) -> str:
    with pytest.raises(Infeasible) as caught:
        check_slots(small_model(experts), gpus, redundant)
    return str(caught.value)


def numbers(text: str, after: str) -> list[int]:
    """The list of numbers that follows a word; empty where the word is not there."""
    match = re.search(rf"{after} (\d+(?:(?:, | or )\d+)*)", text)
    return [int(number) for number in re.split(", | or ", match[1])] if match else []


@pytest.mark.parametrize(
    ("experts", "ep", "least"), [(256, 3, 2), (160, 12, 8), (384, 36, 12), (128, 24, 16)]
)
def test_slots_that_do_not_divide_name_the_nearest_that_do(experts: int, ep: int, least: int) -> None:
    """Engines fail with a bare assertion on these.

    For 256 experts on 3 GPUs R may be 2, 5 or 8, and R = 0 wants an EP that divides 256.
    """
    text = refusal(experts, ep, 0)
    assert numbers(text, "--redundant") == [least, least + ep, least + 2 * ep]
    assert numbers(text, "--ep") == [size for size in range(1, LARGEST_NAMED_EP + 1) if experts % size == 0]
    assert f"{experts} experts + 0 redundant = {experts} slots do not divide over {ep} GPUs" in text


def test_a_slot_count_is_never_rounded() -> None:
    """290 slots on 36 GPUs: TensorRT-LLM's tool places 288 and writes 290.

    Here R = 32 (288 slots) and 68 (324) are named, and 68 and 104 for R = 100.
    """
    assert numbers(refusal(256, 36, 34), "--redundant")[:2] == [32, 68]
    assert numbers(refusal(256, 36, 100), "--redundant")[:2] == [68, 104]


def test_one_gpu_takes_no_redundant_experts() -> None:
    """SGLang's EP size left at its default of 1 with 16 redundant experts.

    None may sit twice on the only GPU.
    """
    assert "at most 0 are of use on 1 GPUs" in refusal(256, 1, 16)


def test_slots_that_divide_are_counted_out() -> None:
    """DeepSeek-V3 on 32 GPUs with 32 redundant experts, and the least and most of a small case."""
    assert check_slots(small_model(256), 32, 32) == 9
    assert check_slots(small_model(4), 4, 0) == 1
    assert check_slots(small_model(4), 4, 12) == 4


@given(st.integers(1, 700), st.integers(1, 700), st.integers(-(10**40), 10**40) | st.integers(-5, 2000))
@example(4, 3, 3)  # 7 slots: EP 1 divides them, but would hold four experts in seven slots
@example(1024, 3, 0)
@example(256, 3, 265)  # 521 slots, a prime number
def test_every_number_in_a_refusal_is_feasible(experts: int, gpus: int, redundant: int) -> None:
    """Either the slots of a GPU, or one line whose suggestions are taken when asked for."""
    try:
        slots_per_gpu = check_slots(small_model(experts), gpus, redundant)
    except Infeasible as error:
        text = str(error)
        assert "\n" not in text
        suggested = (
            numbers(text, "--redundant") + numbers(text, f"on {gpus} GPUs are") + numbers(text, "at most")
        )
        assert suggested
        assert all(check_slots(small_model(experts), gpus, count) for count in suggested)
        sizes = numbers(text, "--ep")
        assert all(check_slots(small_model(experts), size, redundant) for size in sizes)
        assert max(sizes, default=1) <= LARGEST_NAMED_EP
        assert bool(sizes) == ("--ep" in text)
    else:
        assert slots_per_gpu * gpus == experts + redundant
        assert slots_per_gpu <= experts


@pytest.mark.parametrize("redundant", [-(10**30), -1, 10**30, 2**63])
def test_absurd_counts_end_at_once(redundant: int) -> None:
    """No list as long as the number is made on the way to the refusal."""
    start = time.perf_counter()
    text = refusal(256, 32, redundant)
    assert time.perf_counter() - start < 0.5
    assert len(text) < 400


def test_more_slots_than_experts_are_refused() -> None:
    """Five slots a GPU for four experts: one would sit there twice."""
    with pytest.raises(Infeasible, match="none may sit twice on one GPU; at most 12 are of use"):
        question(slots_per_gpu=5)


def deepseek(slots_per_gpu: int, floor_bytes: float) -> Problem:
    """58 layers of DeepSeek-V3's experts in FP8 on 16 GPUs of 2000 GB."""
    model = small_model(
        256, 8, 58, hidden=7168, expert_intermediate=2048, dispatch_width=7168, weight_dtype="fp8"
    )
    counts = np.ones((1, 58, 256), dtype=np.int64)
    load = replace(question().load, tokens_WLE=counts, layer_ids=model.placed_layer_ids)
    return Problem(machine(8, 8), model, load, Workload(), slots_per_gpu, kv_floor_bytes=floor_bytes)


def test_replicas_are_weighed_against_the_kv_cache() -> None:
    """A slot is 58 experts of 44,040,192 bytes and their block scales, 2.55 GB.

    A floor that leaves room for 17.5 slots allows 17.
    """
    slot_bytes = 58 * 44_040_192 * (1 + 4 / 128**2)
    assert deepseek(18, 0.0).slot_bytes == slot_bytes
    floor_bytes = 2000e9 - 17.5 * slot_bytes
    assert deepseek(17, floor_bytes).free_bytes_G.min() == pytest.approx(floor_bytes + 0.5 * slot_bytes)
    kept = r"GPU 0 keeps 1954\.0 GB beside 18 slots of 2\.55 GB"
    with pytest.raises(Infeasible, match=kept + r", .* floor of 1955\.3 GB; 17 slots a GPU would fit$"):
        deepseek(18, floor_bytes)


def test_a_floor_that_not_even_one_copy_meets_says_so() -> None:
    """15 slots on each of 16 GPUs cannot hold 256 experts."""
    with pytest.raises(Infeasible, match="15 slots a GPU would fit, too few for 256 experts on 16 GPUs"):
        deepseek(16, 2000e9 - 15.5 * 58 * 44_050_944)
    with pytest.raises(Infeasible, match="; 0 slots a GPU would fit, too few"):
        deepseek(16, 3000e9)


@pytest.mark.parametrize("floor_bytes", [-1.0, float("nan")])
def test_a_floor_is_a_number_from_zero_up(floor_bytes: float) -> None:
    """NaN compares with nothing, so it would pass in silence."""
    with pytest.raises(BadInput, match="must be 0 or more"):
        deepseek(16, floor_bytes)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("tokens_per_rank", 0, "tokens per rank is 0; it must be at least 1"),
        ("phase", "train", "'train' is neither prefill nor decode"),
        ("transport", "pigeon", "'pigeon' is unknown; known are slot, rank, node, allgather"),
        ("dispatch_dtype", "fp4", "'fp4' is unknown; known are fp8, bf16"),
        ("combine_dtype", "int8", "'int8' is unknown; known are fp8, bf16"),
    ],
)
def test_a_workload_checks_itself(field: str, value: Any, text: str) -> None:
    """Each field, with what is known."""
    with pytest.raises(BadInput, match=text):
        Workload(**{field: value})


def test_a_problem_checks_rule_and_load() -> None:
    """An unknown rule is the user's fault.

    A load of another shape is ours, since readers have to fit it to the model.
    """
    with pytest.raises(BadInput, match="replica rule 'closest' is unknown"):
        question().with_rule("closest")
    with pytest.raises(ValueError, match="a row for every placed layer and a column for every expert"):
        replace(question(), model=small_model(5))


def test_replicas_spread_over_nodes_only_under_a_near_rule() -> None:
    """And only where there are nodes to spread over."""
    assert question(rule="nearest").spreads_over_nodes
    assert question(rule="nearest-static").spreads_over_nodes
    assert not question(rule="even").spreads_over_nodes
    assert not question(rule="nearest", topology=machine(4)).spreads_over_nodes
