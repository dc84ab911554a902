"""A load as a few windows: domains stay apart, nothing is lost, and one window is the cost itself."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cost import affordable_windows, cells_a_token, cost, objective_seconds_L, windows_of
from planner.cost.over_windows import FEWEST_TOKENS, MOST_WINDOWS
from planner.cost.step import costs
from planner.load import LoadProfile, Trace
from planner.problem import Objective, Workload
from tests.planner.small import BEST_ROW, placed, question


def series(sizes: list[int]) -> LoadProfile:
    """Windows of four experts; with several sizes, so many windows a domain."""
    windows = sum(sizes)
    counts_WLE = np.arange(1, windows * 4 + 1, dtype=np.int64).reshape(windows, 1, 4)
    domains = (
        tuple(f"d{index}" for index, size in enumerate(sizes) for _ in range(size)) if len(sizes) > 1 else ()
    )
    return LoadProfile(counts_WLE, (0,), "made up for tests", domains=domains)


@given(sizes=st.lists(st.integers(1, 20), min_size=1, max_size=4))
def test_windows_are_kept_whole(sizes: list[int]) -> None:
    """Every assignment is in one of them, no window holds two domains, and each domain has at most eight."""
    load = series(sizes)
    windows = windows_of(question(), load)
    assert np.sum([part.total_LE for part in windows.loads], axis=0).tolist() == load.total_LE.tolist()
    assert sum(windows.weight_W) == load.windows
    assert all(len(set(part.domains)) <= 1 for part in windows.loads)
    assert [windows.domain_W.count(name) for name in dict.fromkeys(windows.domain_W)] == [
        min(size, MOST_WINDOWS) for size in sizes
    ]


def test_one_window_is_the_cost() -> None:
    """Whatever the objective."""
    problem = question()
    windows, placement = windows_of(problem, problem.load), placed(BEST_ROW, problem)
    for objective in (Objective(), Objective("worst"), Objective("risk", 2.0), Objective(robust=True)):
        found = objective_seconds_L(replace(problem, objective=objective), windows, placement)
        assert found.tolist() == cost(problem, placement).layer_seconds_L.tolist()


def test_a_plan_of_the_sum_is_judged_on_each_window() -> None:
    """Two windows whose sum is even: every placement is level on the sum, none of this kind on both."""
    load = LoadProfile(np.array([[[9, 1, 1, 1]], [[1, 9, 9, 9]]], dtype=np.int64), (0,), "made up for tests")
    problem = replace(question(), load=load)
    placement = placed(BEST_ROW, problem)
    total = cost(problem, placement).total_seconds
    mean, worst = (
        float(
            objective_seconds_L(replace(problem, objective=asked), windows_of(problem, load), placement).sum()
        )
        for asked in (Objective(), Objective("worst"))
    )
    assert total < mean < worst
    assert worst == pytest.approx(
        max(cost(problem, placement, load.with_windows([window])).total_seconds for window in (0, 1))
    )


@pytest.mark.parametrize("rule", ["even", "nearest", "hashed", "round-robin", "lp"])
def test_costs_of_several_loads_are_the_cost_of_each(rule: str) -> None:
    """Whether what the rule shares follows from the placement or from the load."""
    problem = question().with_rule(rule)
    placement = placed(BEST_ROW, problem)
    loads = [
        replace(problem.load, tokens_WLE=np.array([[row]], dtype=np.int64))
        for row in ([9, 1, 1, 1], [1, 1, 1, 9], [5, 5, 5, 5])
    ]
    together = [found.layer_seconds_L.tolist() for found in costs(problem, placement, loads)]
    assert together == [cost(problem, placement, load).layer_seconds_L.tolist() for load in loads]


@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_a_large_trace_is_thinned_and_its_counts_are_not(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Every so many-th token of each window is left, and no window is lost."""
    tokens = FEWEST_TOKENS * step
    load = series([1, 1])
    experts_LTK = np.arange(2 * tokens, dtype=np.int32).reshape(1, -1, 1) % 4
    load = replace(load, trace=Trace(experts_LTK, (tokens, tokens)))
    problem = replace(question(), workload=Workload(transport="node"))
    monkeypatch.setattr("planner.cost.over_windows.TRACED_WORK", 1)
    windows = windows_of(problem, load, 1)
    assert affordable_windows(problem, load) == 1
    assert [part.total_LE.tolist() for part in windows.loads] == load.tokens_WLE.tolist()
    assert [part.trace.experts_LTK.shape[1] for part in windows.loads if part.trace] == [FEWEST_TOKENS] * 2


def test_places_of_a_traced_token() -> None:
    """Two nodes of two GPUs: six places, from both nodes where near replicas are preferred; with counts by
    slot no token is followed.
    """
    problem = replace(question(), workload=Workload(transport="node"))
    assert cells_a_token(problem.with_rule("even")) == problem.gpus + 2
    assert cells_a_token(problem.with_rule("nearest")) == 2 * (problem.gpus + 2)
    assert cells_a_token(replace(problem, workload=Workload(transport="slot"))) == 1
