"""The price of a placement: by hand on tests/data/two-nodes.yaml, and by what must not change it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.bounds import load_bound
from planner.cost import Cost, constants_of, cost
from planner.load import LoadProfile, Trace
from planner.placement import Placement
from planner.problem import TRANSPORTS, Problem, Workload
from tests.planner.engines.examples import machine
from tests.planner.small import (
    BEST_ROW,
    COUNTS,
    Ints,
    every_row,
    placed,
    question,
    random_row,
    small_model,
    two_nodes,
)

RULE_NAMES = ["even", "nearest", "nearest-static"]


@st.composite
def priced(draw: st.DrawFn, rules: list[str] = RULE_NAMES) -> tuple[Problem, Ints]:
    """A problem on equal nodes, any transport, and a placement."""
    nodes, per_node, experts = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 6))
    gpus = nodes * per_node
    slots_per_gpu = draw(st.integers(-(-experts // gpus), experts))
    counts = draw(st.lists(st.integers(0, 30), min_size=experts, max_size=experts))
    transport = draw(st.sampled_from(sorted(TRANSPORTS)))
    top_k = draw(st.integers(1, experts))
    problem = question(
        counts,
        machine(*[per_node] * nodes),
        slots_per_gpu,
        draw(st.sampled_from(rules)),
        top_k=top_k,
        transport=transport,
    )
    return problem, random_row(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))), experts, gpus, slots_per_gpu
    )


def starts(problem: Problem) -> tuple[float, float]:
    """Start-up of dispatch and of combine."""
    constants, size = constants_of(problem), (problem.gpus, problem.slots_per_gpu)
    return constants.dispatch.start_seconds(*size), constants.combine.start_seconds(*size)


START = starts(question())


def price(problem: Problem, row_P: Any) -> Cost:
    return cost(problem, placed(row_P, problem))


def test_the_best_plan_by_hand_under_nearest() -> None:
    """600,000 bytes over NVLink at 400 GB/s take 1.5 us, 595,200 back 1.488 us; 600 assignments on each GPU
    17.856 us at peak, and 600 vectors of 992 elements enter it; nothing crosses nodes.
    """
    problem = question(topology=two_nodes("measured"), rule="nearest")
    found, compute = price(problem, BEST_ROW), constants_of(problem).compute
    assert found.load_LG.tolist() == [pytest.approx([600] * 4)]
    assert found.dispatch_seconds_L[0] == pytest.approx(START[0] + 1.5e-6)
    assert found.combine_seconds_L[0] == pytest.approx(START[1] + 1.488e-6)
    assert found.compute_seconds_L[0] == pytest.approx(
        compute.fixed_seconds + 17.856e-6 / compute.flops_efficiency + 600 * 992 * compute.seconds_per_value
    )
    assert "nvlink" in found.bottleneck
    assert found.cross_node_share == 0
    assert found.max_over_mean == pytest.approx(1)


def test_the_best_plan_by_hand_under_even() -> None:
    """300 messages of 2000 bytes leave each NIC: 12 us at 50 GB/s. Half of all assignments cross nodes."""
    found = price(question(topology=two_nodes("measured"), rule="even"), BEST_ROW)
    assert found.dispatch_seconds_L[0] == pytest.approx(START[0] + 12e-6)
    assert found.combine_seconds_L[0] == pytest.approx(START[1] + 11.904e-6)
    assert "nic" in found.bottleneck
    assert found.cross_node_share == pytest.approx(0.5)


def test_a_rate_that_was_not_measured_is_reached_in_part() -> None:
    """The same machine by its line rates: each phase takes 1 / efficiency as long."""
    for rule, seconds, tier in (("nearest", 1.5e-6, "nvlink"), ("even", 12e-6, "nic")):
        problem = question(topology=two_nodes("assumed"), rule=rule)
        reached = constants_of(problem).dispatch.efficiency(tier)
        assert price(problem, BEST_ROW).dispatch_seconds_L[0] == pytest.approx(START[0] + seconds / reached)


@pytest.mark.parametrize("rule", ["even", "nearest"])
def test_no_other_placement_is_better(rule: str) -> None:
    """All valid placements of the hand-solved question at once, a layer each: none costs less than the one in
    the file.
    """
    rows_LP = np.concatenate([[BEST_ROW], every_row(4, 4, 2).reshape(-1, 8)])
    layers = len(rows_LP)
    model = small_model(layers=layers)
    load = LoadProfile(
        np.tile(np.array(COUNTS, dtype=np.int64), (1, layers, 1)), model.placed_layer_ids, "made up for tests"
    )
    problem = Problem(two_nodes(), model, load, Workload(600), 2, rule)
    seconds_L = cost(problem, Placement(rows_LP, model.placed_layer_ids, 4)).layer_seconds_L
    assert layers - 1 == 6**4 - 4 * 3**4 + 6  # every GPU two of four, less those that leave an expert out
    assert seconds_L[0] <= seconds_L.min() * (1 + 1e-12)
    assert seconds_L[0] < np.median(seconds_L)


@given(case=priced(["even"]), seed=st.integers(0, 1000))
def test_equal_gpus_of_a_node_may_change_places(case: tuple[Problem, Ints], seed: int) -> None:
    """Under `even`, which knows no order of slots, who is who within a node costs nothing."""
    problem, row_P = case
    rng, node_G = np.random.default_rng(seed), problem.node_G
    order_G = np.concatenate(
        [rng.permutation(np.flatnonzero(node_G == node)) for node in range(node_G.max() + 1)]
    )
    moved_P = row_P.reshape(problem.gpus, -1)[order_G].ravel()
    assert price(problem, moved_P).layer_seconds_L == pytest.approx(price(problem, row_P).layer_seconds_L)


@given(case=priced(["even", "nearest"]), seed=st.integers(0, 1000))
def test_the_names_of_experts_do_not_matter(case: tuple[Problem, Ints], seed: int) -> None:
    """Renaming experts in load and placement alike leaves every figure."""
    problem, row_P = case
    name_E = np.random.default_rng(seed).permutation(problem.model.experts)
    counts_WLE = np.empty_like(problem.load.tokens_WLE)
    counts_WLE[..., name_E] = problem.load.tokens_WLE
    renamed = replace(problem, load=replace(problem.load, tokens_WLE=counts_WLE))
    before, after = price(problem, row_P), price(renamed, name_E[row_P])
    assert after.layer_seconds_L == pytest.approx(before.layer_seconds_L)
    assert after.load_LG == pytest.approx(before.load_LG)
    assert after.cross_node_share == pytest.approx(before.cross_node_share)


@given(case=priced())
def test_counts_are_shares(case: tuple[Problem, Ints]) -> None:
    """A profile recorded for twice as long costs the same, to the last bit."""
    problem, row_P = case
    longer = replace(problem.load, tokens_WLE=problem.load.tokens_WLE * 2)
    assert (
        cost(problem, placed(row_P, problem), longer).layer_seconds_L.tolist()
        == price(problem, row_P).layer_seconds_L.tolist()
    )


@given(case=priced())
def test_twice_the_tokens_are_twice_the_bytes(case: tuple[Problem, Ints]) -> None:
    """Beyond start-up both phases double, and so does every GPU's load."""
    problem, row_P = case
    workload = problem.workload
    once, twice = (
        price(problem, row_P),
        price(
            replace(problem, workload=replace(workload, tokens_per_rank=2 * workload.tokens_per_rank)), row_P
        ),
    )
    for phase, start in zip(("dispatch_seconds_L", "combine_seconds_L"), starts(problem), strict=True):
        assert getattr(twice, phase) - start == pytest.approx(2 * (getattr(once, phase) - start), abs=1e-15)
    assert twice.load_LG == pytest.approx(2 * once.load_LG)


@given(case=priced(["even"]))
def test_even_shares_cross_nodes_by_chance(case: tuple[Problem, Ints]) -> None:
    """On N equal nodes a source finds 1 / N of its slots' load at home, whatever the placement."""
    problem, row_P = case
    assert price(problem, row_P).cross_node_share == pytest.approx(1 - 1 / problem.topology.node_count)


@given(case=priced())
def test_no_gpu_load_is_below_the_bound(case: tuple[Problem, Ints]) -> None:
    """The busiest GPU of any placement carries at least what the bound says, under every rule; the sum of
    loads is what was sent.
    """
    problem, row_P = case
    found = price(problem, row_P)
    assignments = problem.workload.tokens_per_rank * problem.gpus * problem.model.top_k
    bound = load_bound(
        problem.shares_LE, problem.gpus, problem.slots_per_gpu, even=problem.replica_rule == "even"
    )
    assert found.load_LG.max() >= bound.load_L[0] * assignments * (1 - 1e-9)
    assert found.load_LG.sum() == pytest.approx(assignments)


def test_balance_from_first_principles() -> None:
    """Two layers, counted with loops: max over mean per layer, and the sum of the maxima over the sum of the
    means.
    """
    counts_LE, rows_LP = (
        np.array([[6, 3, 2, 1], [0, 0, 5, 5]]),
        np.array([[0, 1, 0, 2, 3, 1, 0, 2], [0, 1, 2, 3, 2, 0, 1, 3]]),
    )
    model = small_model(layers=2)
    load = LoadProfile(counts_LE[None].copy(), (0, 1), "made up for tests")
    found = cost(Problem(two_nodes(), model, load, Workload(12), 2), Placement(rows_LP, (0, 1), 4))
    loads = []
    for counts_E, row_P in zip(counts_LE.tolist(), rows_LP.tolist(), strict=True):
        gpu_loads = [0.0] * 4
        for slot, expert in enumerate(row_P):
            gpu_loads[slot // 2] += 4 * 12 * counts_E[expert] / sum(counts_E) / row_P.count(expert)
        loads.append(gpu_loads)
    assert found.load_LG == pytest.approx(np.array(loads))
    assert found.max_over_mean_L == pytest.approx([max(row) / (sum(row) / 4) for row in loads])
    assert found.max_over_mean == pytest.approx(
        (max(loads[0]) + max(loads[1])) / (sum(loads[0]) / 4 + sum(loads[1]) / 4)
    )
    heavier = replace(found, load_LG=found.load_LG * np.array([[1.0], [3]]))
    assert heavier.max_over_mean == pytest.approx(
        (max(loads[0]) + 3 * max(loads[1])) / (sum(loads[0]) / 4 + 3 * sum(loads[1]) / 4)
    )
    assert found.balancedness_L == pytest.approx(1 / found.max_over_mean_L)


def test_nodes_need_not_be_equal() -> None:
    """144 experts on 18 GPUs in nodes of 5, 5, 4 and 4 (what EPLB refuses): even load crosses with 1 - sum of
    squared node shares.
    """
    problem = question([1] * 144, machine(5, 5, 4, 4), 8, top_k=8)
    for transport in TRANSPORTS:
        found = price(
            replace(problem, workload=replace(problem.workload, transport=transport)), np.arange(144)
        )
        assert found.cross_node_share == pytest.approx(1 - (25 + 25 + 16 + 16) / 18**2)
        assert np.isfinite(found.total_seconds)


def test_one_gpu_sends_nothing() -> None:
    """No start-up, no bottleneck but its name."""
    found = price(question([3, 1], machine(1), 2), [0, 1])
    assert found.dispatch_seconds_L[0] == found.combine_seconds_L[0] == 0
    assert found.bottleneck == "start-up"


def test_a_layer_without_load_counts_as_even() -> None:
    """No signal: every expert gets the same, and no figure is a division by zero."""
    assert (
        price(question([0, 0, 0, 0]), BEST_ROW).load_LG.tolist()
        == price(question([1, 1, 1, 1]), BEST_ROW).load_LG.tolist()
    )


def test_a_trace_is_used_where_it_was_recorded() -> None:
    """Tokens that use experts 0 and 1 together hit one GPU; the histogram cannot know, and a layer that was
    not recorded is priced by it.
    """
    traced_LTK = np.array([[[0, 1], [2, 3]] * 2, [[-1, -1]] * 4], dtype=np.int32)
    model = small_model(top_k=2, layers=2)
    load = LoadProfile(np.full((1, 2, 4), 2), (0, 1), "made up for tests", trace=Trace(traced_LTK, (4,)))
    problem = Problem(machine(2), model, load, Workload(100, transport="rank"), 2)
    found = cost(problem, Placement(np.array([[0, 1, 2, 3]] * 2), (0, 1), 2))
    without = cost(problem, Placement(np.array([[0, 1, 2, 3]] * 2), (0, 1), 2), replace(load, trace=None))
    assert found.dispatch_seconds_L[0] < found.dispatch_seconds_L[1]
    assert found.dispatch_seconds_L[1] == without.dispatch_seconds_L[1] == without.dispatch_seconds_L[0]
    start = starts(problem)[0]
    together = (found.dispatch_seconds_L - start) / (without.dispatch_seconds_L - start)
    assert together[0] == pytest.approx(
        0.5 / (1 - 2 / 4 * 1 / 3)
    )  # half of the tokens, where independent pairs are 5 in 6


@pytest.mark.parametrize(("seconds", "name"), [([1.0, 1, 3], "a"), ([1.0, 1, 2], "a"), ([1.0, 1, 1], "b")])
def test_the_dearest_bottleneck_is_named(seconds: list[float], name: str) -> None:
    """By the time it takes over all layers, not by how many layers it slows; ties go to the first name."""
    none_L = np.zeros(3)
    assert (
        Cost(
            (0, 1, 2),
            np.ones((3, 1)),
            np.array(seconds),
            none_L,
            none_L,
            ("b", "b", "a"),
            none_L,
            none_L.astype(bool),
        ).bottleneck
        == name
    )


def test_a_silent_layer_is_no_part_of_a_balance_figure() -> None:
    """A layer that recorded nothing is taken as even; counted, it would make the plan look better."""
    counts_WLE = np.array([[[8, 0, 0, 0], [0, 0, 0, 0]]], dtype=np.int64)
    problem = replace(
        question(), model=small_model(layers=2), load=LoadProfile(counts_WLE, (0, 1), "made up for tests")
    )
    found = cost(problem, Placement(np.array([BEST_ROW, BEST_ROW]), (0, 1), 4))
    assert found.silent_L.tolist() == [False, True]
    assert found.max_over_mean == found.max_over_mean_L[0] == 2
    assert found.max_over_mean_L[1] == 1
