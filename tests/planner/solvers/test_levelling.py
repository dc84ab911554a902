"""Search against shift: never worse by its own score, far better where the sum hides what domains ask for."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from planner.cost import cost, objective_seconds_L, windows_of
from planner.load import LoadProfile
from planner.placement import Placement
from planner.plan import Origin, Plan, plan_to_dict
from planner.planning import make_plan
from planner.problem import Objective, Problem, violations
from planner.problem.islands import islands_L
from planner.report.plan import plan_report
from planner.solvers import Search, best_rows, find_method
from planner.solvers.levelling import levelled
from tests.strategies import problem_of


def two_domains(
    seed: int = 0, experts: int = 80, gpus: int = 8, slots_per_gpu: int = 11, windows: int = 3, **changes: Any
) -> Problem:
    """Domains that make opposite experts hot: on their sum all weigh about the same.

    Too large for CP-SAT, which takes seconds.
    """
    rng = np.random.default_rng(seed)
    popularity_LE = rng.lognormal(0, 1, (2, experts))
    opposite_LE = popularity_LE.max() + popularity_LE.min() - popularity_LE
    counts_WLE = np.array(
        [rng.poisson(1000 * mean_LE) for mean_LE in (popularity_LE, opposite_LE) for _ in range(windows)]
    ).astype(np.int64)
    load = LoadProfile(
        counts_WLE, (0, 1), "made up for tests", domains=("chat",) * windows + ("code",) * windows
    )
    return replace(problem_of(counts_WLE[0].tolist(), gpus, slots_per_gpu, nodes=2), load=load, **changes)


def planned(problem: Problem, held_out: LoadProfile | None = None, method: str = "auto") -> Plan:
    return make_plan(lambda _: problem, problem.redundant, Search(method), Origin(), held_out)


@settings(max_examples=10)
@given(
    seed=st.integers(0, 1000),
    robust=st.booleans(),
    resplittable=st.booleans(),
    rule=st.sampled_from(["even", "nearest"]),
    kind=st.sampled_from([("mean", 0.0), ("worst", 0.0), ("risk", 1.0)]),
)
def test_no_layer_scores_worse(
    seed: int, robust: bool, resplittable: bool, rule: str, kind: tuple[str, float]
) -> None:
    """Whatever the objective, the rule and the limits; and no rule is broken."""
    objective = Objective(*kind, robust=robust)
    problem = two_domains(
        seed,
        experts=12,
        gpus=4,
        slots_per_gpu=4,
        objective=objective,
        replica_rule=rule,
        resplittable=resplittable,
    )
    windows = windows_of(problem, problem.load)
    start = find_method("greedy")(problem)
    if resplittable and (islands_L(start.expert_LP, 4) > 1).any():
        return
    found = levelled(
        problem, windows, start, lambda placement: objective_seconds_L(problem, windows, placement)
    )
    assert violations(problem, found) == []
    assert (
        objective_seconds_L(problem, windows, found) <= objective_seconds_L(problem, windows, start)
    ).all()
    again = levelled(
        problem, windows, start, lambda placement: objective_seconds_L(problem, windows, placement)
    )
    assert (again.expert_LP == found.expert_LP).all()


def test_robust_is_level_in_every_domain() -> None:
    """A plan of the sum is 1.2 or more on one domain.

    The robust one close to 1 on both, and no worse than either domain's own plan on the worst.
    """
    problem = two_domains(objective=Objective(robust=True))
    of_sum, robust = find_method("refine")(problem), planned(problem).placement
    loads = [load for name in ("chat", "code") if (load := problem.load.of_domain(name))]
    on_sum, on_robust = (
        max(cost(problem, placement, load).max_over_mean for load in loads) for placement in (of_sum, robust)
    )
    assert cost(problem, of_sum).max_over_mean < 1.01
    assert on_sum > 1.1
    assert on_robust < 1.05
    own = [find_method("refine")(replace(problem, load=load)) for load in loads]
    assert on_robust < min(
        max(cost(problem, placement, load).max_over_mean for load in loads) for placement in own
    )


def test_nothing_to_do_without_windows() -> None:
    """One window, equal GPUs: the placement comes back, and the score is not asked."""
    problem = problem_of([[5, 4, 3, 2, 1, 1]], gpus=2, slots_per_gpu=4)
    start = find_method("greedy")(problem)

    def score(_: Placement) -> np.ndarray:
        raise AssertionError

    assert (
        levelled(problem, windows_of(problem, problem.load), start, score).expert_LP.tolist()
        == start.expert_LP.tolist()
    )


def test_rows_must_win_what_they_are_worth() -> None:
    """Two layers, better by 0.4 and 0.6 %: with a worth of 0.5 % the first keeps its row."""
    problem = two_domains(experts=12, gpus=4, slots_per_gpu=4)
    before, after = find_method("linear")(problem), find_method("greedy")(problem)
    score_L = {id(before): np.array([1.0, 1.0]), id(after): np.array([0.996, 0.994])}
    found = best_rows(before, [after], lambda placement: score_L[id(placement)], worth=0.005)
    assert found.expert_LP[0].tolist() == before.expert_LP[0].tolist()
    assert found.expert_LP[1].tolist() == after.expert_LP[1].tolist()


def test_a_budget_that_is_over_stops_it() -> None:
    """`more` is asked before the first candidate."""
    problem = two_domains(experts=12, gpus=4, slots_per_gpu=4)
    start = find_method("greedy")(problem)
    found = levelled(problem, windows_of(problem, problem.load), start, lambda _: np.zeros(2), lambda: False)
    assert found.expert_LP.tolist() == start.expert_LP.tolist()


def test_a_plan_shows_its_domains_apart() -> None:
    """Fitted and held-out, each with the cost and the objective of its own windows, in the report and in the
    file.
    """
    problem = two_domains(objective=Objective("risk", 1.0))
    held_out = two_domains(seed=1, windows=2).load
    plan = planned(problem, held_out)
    assert [(domain.name, domain.fitted_windows, domain.held_out_windows) for domain in plan.domains] == [
        ("chat", 3, 2),
        ("code", 3, 2),
    ]
    for domain in plan.domains:
        fitted, unseen = problem.load.of_domain(domain.name), held_out.of_domain(domain.name)
        assert fitted is not None
        assert unseen is not None
        assert domain.fitted is not None
        assert domain.fitted.total_seconds == cost(problem, plan.placement, fitted).total_seconds
        expected = objective_seconds_L(problem, windows_of(problem, unseen), plan.placement).sum()
        assert domain.held_out_objective_seconds == pytest.approx(expected)
    value = plan_to_dict(plan)["predicted"]["domains"]
    assert [entry["name"] for entry in value] == ["chat", "code"]
    assert value[1]["held_out"]["windows"] == 2
    assert plan_report(plan)


def test_robust_needs_domains_and_a_method_that_weighs() -> None:
    """Both are refused in one line that says what to do."""
    one = replace(problem_of([[1, 2, 3, 4]], gpus=2, slots_per_gpu=2), objective=Objective(robust=True))
    with pytest.raises(BadInput, match="give --load once for each"):
        planned(one)
    with pytest.raises(BadInput, match="--method refine cannot; use --method auto"):
        planned(two_domains(objective=Objective(robust=True)), method="refine")


@pytest.mark.parametrize(
    ("method", "windows", "words"),
    [("refine", 3, "method refine only balances"), ("auto", 1, "one was fitted")],
)
def test_an_objective_that_decides_nothing_is_told(method: str, windows: int, words: str) -> None:
    """As a note in the plan."""
    problem = two_domains(windows=windows, objective=Objective("worst"))
    if windows == 1:
        problem = replace(problem, load=problem.load.with_windows([0]))
    assert words in " ".join(planned(problem, method=method).origin.notes)
