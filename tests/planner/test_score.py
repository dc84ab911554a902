"""A load as a few windows: domains stay apart, nothing is lost, and one window is the cost itself."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cost import cost
from planner.load import LoadProfile
from planner.objective import Objective
from planner.score import MOST_WINDOWS, objective_seconds_L, windows_of
from tests.planner.small import BEST_ROW, placed, question


def series(sizes: list[int]) -> LoadProfile:
    """Windows of four experts; with several sizes, so many windows a domain."""
    windows = sum(sizes)
    counts_WLE = np.arange(1, windows * 4 + 1, dtype=np.int64).reshape(windows, 1, 4)
    domains = tuple(f"d{index}" for index, size in enumerate(sizes) for _ in range(size)) if len(sizes) > 1 else ()
    return LoadProfile(counts_WLE, (0,), "made up for tests", domains=domains)


@given(sizes=st.lists(st.integers(1, 20), min_size=1, max_size=4))
def test_windows_are_kept_whole(sizes: list[int]) -> None:
    """Every assignment is in one of them, no window holds two domains, and each domain has at most eight."""
    load = series(sizes)
    windows = windows_of(question(), load)
    assert sum(part.total_LE for part in windows.loads).tolist() == load.total_LE.tolist()  # type: ignore[union-attr]
    assert sum(windows.weight_W) == load.windows
    assert all(len(set(part.domains)) <= 1 for part in windows.loads)
    assert [windows.domain_W.count(name) for name in dict.fromkeys(windows.domain_W)] == [min(size, MOST_WINDOWS) for size in sizes]


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
        float(objective_seconds_L(replace(problem, objective=asked), windows_of(problem, load), placement).sum()) for asked in (Objective(), Objective("worst"))
    )
    assert total < mean < worst
    assert worst == pytest.approx(max(cost(problem, placement, load.with_windows([window])).total_seconds for window in (0, 1)))
