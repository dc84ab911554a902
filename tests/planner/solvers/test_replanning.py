"""A re-plan spends moves where they save predicted time, may keep everything, and never breaks its limit."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cost import objective_seconds_L
from planner.load import LoadProfile
from planner.placement import Placement
from planner.plan import PREVIOUS, Origin, Plan, moves_L
from planner.plan.moves import replayed
from planner.planning import make_plan
from planner.problem import Problem, violations
from planner.solvers import CurrentPlacement, Search, find_method, fitted_windows, replanned_within
from planner.solvers.replanning import ASSUMED_DRIFT, drift_of
from tests.strategies import problem_of, problems


def score_of(problem: Problem) -> partial[np.ndarray]:
    return partial(objective_seconds_L, problem, fitted_windows(problem))


def shifted(rule: str = "even") -> tuple[Problem, Placement]:
    """A problem of two layers on two nodes, and the greedy plan for another load."""
    loads = (np.random.default_rng(2).lognormal(0, 1, (2, 24)) * 1e6).astype(np.int64)
    before, after = (
        problem_of(counts.tolist(), gpus=8, slots_per_gpu=4, nodes=2, rule=rule)
        for counts in (loads, loads[:, ::-1])
    )
    return after, find_method("greedy")(before)


def planned(problem: Problem, current: CurrentPlacement, method: str = "greedy") -> Plan:
    return make_plan(lambda _: problem, problem.redundant, Search(method), Origin(), None, current)


@settings(max_examples=40)
@given(problem=problems(), most=st.integers(0, 12))
def test_within_the_limit_and_no_layer_slower(problem: Problem, most: int) -> None:
    """Any limit and both kinds of rule: the judge is content, the moves are counted, no layer is predicted
    slower than it was.
    """
    old, score = find_method("linear")(problem), score_of(problem)
    found = replanned_within(
        problem, CurrentPlacement(old, "old.json", most), find_method("greedy")(problem), score
    )
    assert violations(problem, found) == []
    assert moves_L(old, found).sum() == (found.expert_LP != old.expert_LP).sum() <= most
    assert (score(found) <= score(old) * (1 + 1e-12)).all()


def test_the_best_plan_is_kept() -> None:
    """From the plan that the method itself would make, whatever is allowed: nothing moves."""
    problem, _ = shifted()
    best = find_method("refine")(problem)
    plan = planned(problem, CurrentPlacement(best, "old.json"), "refine")
    assert plan.placement.expert_LP.tolist() == best.expert_LP.tolist()
    assert plan.moves is not None
    assert len(plan.moves.transfers) == 0
    assert plan.saved_seconds == 0


@pytest.mark.parametrize("rule", ["even", "nearest", "nearest-static"])
def test_a_plan_from_another_carries_its_moves(rule: str) -> None:
    """The previous plan is a baseline; replaying the moves gives the plan.

    What a step saves is the difference of the two predictions.
    """
    problem, old = shifted(rule)
    plan = planned(problem, CurrentPlacement(old, "old.json", 10))
    assert plan.moves is not None
    assert 0 < len(plan.moves.transfers) <= 10
    assert replayed(old, plan.moves.transfers).expert_LP.tolist() == plan.placement.expert_LP.tolist()
    before = next(baseline for baseline in plan.baselines if baseline.name == PREVIOUS)
    assert plan.saved_seconds == before.fitted.total_seconds - plan.fitted.total_seconds > 0


def test_more_moves_never_predict_more_time() -> None:
    """0, 4, 12 moves and any number: each is at least as fast as the one before on the load it was fitted to,
    and ends at the plan from nothing or better.
    """
    problem, old = shifted()
    limits = (0, 4, 12, None)
    seconds = [
        planned(problem, CurrentPlacement(old, "old.json", most)).fitted.total_seconds for most in limits
    ]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[-1] <= make_plan(
        lambda _: problem, problem.redundant, Search("greedy"), Origin()
    ).fitted.total_seconds * (1 + 1e-3)


def test_same_bytes_twice() -> None:
    """Nothing is drawn."""
    problem, old = shifted()
    first, second = (
        planned(problem, CurrentPlacement(old, "old.json", 8)).placement.expert_LP.tobytes() for _ in range(2)
    )
    assert first == second


def test_drift_by_hand() -> None:
    """Shares 0.6 and 0.4, then 0.4 and 0.6: every share changes by 0.2, and their root mean square is
    sqrt(0.26).
    """
    load = LoadProfile(np.array([[[6, 4]], [[4, 6]]]), (0,), "by hand")
    assert drift_of(load)[0] == pytest.approx(0.2 / 0.26**0.5)


def test_drift_is_the_relative_change_of_every_expert() -> None:
    """Loads that move by a share of 14 % each, as lognormal drift with rho 0.99 does: within a tenth."""
    random = np.random.default_rng(0)
    first = random.lognormal(0, 1, (1, 4096))
    load = LoadProfile(
        (np.array([first, first * np.exp(random.normal(0, 0.14, first.shape))]) * 1e6).astype(np.int64),
        (0,),
        "made here",
    )
    assert drift_of(load)[0] == pytest.approx(0.14, rel=0.1)


def test_one_window_shows_no_drift() -> None:
    """Some is assumed; a layer without a count has none."""
    assert drift_of(LoadProfile(np.array([[[6, 4]]]), (0,), "by hand")).tolist() == [ASSUMED_DRIFT]
    assert drift_of(LoadProfile(np.zeros((2, 1, 2), dtype=np.int64), (0,), "by hand")).tolist() == [0.0]
