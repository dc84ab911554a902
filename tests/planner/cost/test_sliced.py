"""Experts without expert parallelism: numbers worked by hand, and one GPU, on which slices are whole."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import Infeasible
from planner.cost import constants_of, cost, sliced_cost
from planner.problem import Problem
from planner.topology import read_topology
from tests.planner.small import placed, question


def asked(counts: list[int], gpus: int, tokens: int = 8, width: int = 64) -> Problem:
    """One layer on H100s of one node, by all-gather."""
    topology = read_topology(f"hgx-h100:1x{gpus}")
    problem = question(
        counts, topology, -(-len(counts) // gpus), tokens_per_rank=tokens, transport="allgather"
    )
    return replace(problem, model=replace(problem.model, expert_intermediate=width))


def test_by_hand() -> None:
    """Two GPUs with 8 tokens each: 16 assignments on both, half an expert wide; 4 (1 - (3/4)^16) experts are
    touched; 8 vectors of 992 x 2 bytes go over NVLink, once gathered and once scattered.
    """
    problem = asked([1] * 4, gpus=2)
    found, known = sliced_cost(problem), constants_of(problem)
    assert (found.load_LG == 16).all()
    assert found.max_over_mean == 1
    weights = 3 * 992 * 32
    reading = 4 * (1 - 0.75**16) * weights * 2 / (3.35e12 * known.compute.memory_efficiency)
    assert reading > 16 * 2 * weights / (989e12 * known.compute.flops_efficiency)
    rows = 16 * 992 * known.compute.seconds_per_value
    assert found.compute_seconds_L == pytest.approx([known.compute.fixed_seconds + reading + rows])
    for of, seconds_L in (
        (known.dispatch, found.dispatch_seconds_L),
        (known.combine, found.combine_seconds_L),
    ):
        sent = 8 * 992 * 2 / (450e9 * of.nvlink_efficiency)
        assert seconds_L == pytest.approx([of.start_seconds(2, 2) + sent])


@given(st.lists(st.integers(0, 1000), min_size=4, max_size=8), st.integers(1, 64))
def test_on_one_gpu_a_slice_is_the_whole_expert(counts: list[int], tokens: int) -> None:
    problem = asked(counts, gpus=1, tokens=tokens)
    whole, sliced = cost(problem, placed(list(range(len(counts))), problem)), sliced_cost(problem)
    for name in ("load_LG", "dispatch_seconds_L", "compute_seconds_L", "combine_seconds_L", "cross_node_L"):
        assert getattr(sliced, name) == pytest.approx(getattr(whole, name)), name


def test_a_load_with_a_hot_expert_costs_no_more_than_an_even_one() -> None:
    """No GPU waits for another, and fewer experts are touched."""
    even, hot = (sliced_cost(asked(counts, gpus=4)) for counts in ([1] * 8, [1000] + [1] * 7))
    assert hot.total_seconds < even.total_seconds
    assert np.ptp(hot.load_LG) == 0


def test_experts_that_do_not_divide_over_the_gpus_are_sliced_all_the_same() -> None:
    """Five over two GPUs: as many are touched as on a GPU of its own that has the tokens of both."""
    two, one = sliced_cost(asked([1] * 5, gpus=2)), sliced_cost(asked([1] * 5, gpus=1, tokens=16, width=32))
    assert two.compute_seconds_L == pytest.approx(one.compute_seconds_L)


def test_replicas_rule_and_transport_have_no_say() -> None:
    problem = asked([1] * 4, gpus=2)
    slot = replace(problem.workload, transport="slot", dispatch_dtype="fp8")
    other = replace(problem, workload=slot, slots_per_gpu=4, replica_rule="nearest")
    assert sliced_cost(other).total_seconds == sliced_cost(problem).total_seconds


def test_a_width_that_does_not_divide_is_refused() -> None:
    with pytest.raises(Infeasible, match="experts 63 wide do not divide into 2 equal slices"):
        sliced_cost(asked([1] * 4, gpus=2, width=63))
