"""One comparison: no step keeps what the objective calls worse under the engine's own rule.

Rules, objectives, one and several domains; windows that differ, so that their sum says little of them.
"""

from dataclasses import replace
from typing import Any

import pytest

from planner.cost import Floats
from planner.placement import Placement
from planner.planning.replanning import replanned
from planner.problem import Objective, Problem, Survival, violations
from planner.replica import ACROSS_LAYERS
from planner.replica.registry import RULES
from planner.solvers import (
    CurrentPlacement,
    Search,
    find_method,
    find_placement,
    in_expectation,
    levelling,
    objective_score,
    search,
)
from planner.solvers.kernels.arrays import Solved
from planner.solvers.methods import auto, cpsat
from planner.solvers.search import PRICE_OF_DISPERSAL
from tests.planner.solvers.test_levelling import two_domains

OBJECTIVES = (Objective(), Objective("worst"), Objective("risk", 1.0), Objective(robust=True))
ROUNDING = 1 + 1e-12


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The portfolio without its slowest member, and one round of weights."""
    monkeypatch.setattr(cpsat, "SMALL_CELLS", 0)
    monkeypatch.setattr(levelling, "ROUNDS", 1)


def question(rule: str, domains: int, **changes: Any) -> Problem:
    """Two layers of 12 experts on 4 GPUs of 2 nodes. One domain: the windows of both as one series."""
    size = {"slots_per_gpu": 5, "experts": 12, "gpus": 4, "windows": 2}
    problem = two_domains(seed=3, replica_rule=rule, **{**size, **changes})
    return problem if domains == 2 else replace(problem, load=replace(problem.load, domains=()))


def seconds_L(problem: Problem, placement: Placement) -> Floats:
    """The objective, under the problem's own rule."""
    return objective_score(problem)(placement)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> dict[str, Placement]:
    """What the search had in hand on the way: the portfolio's answer, and that levelled."""
    held: dict[str, Placement] = {}
    portfolio, level = auto.solve_with_bounds, levelling.levelled

    def kept_portfolio(*args: Any, **settings: Any) -> Solved:
        found = portfolio(*args, **settings)
        held["portfolio"] = found.placement
        return found

    def kept_level(*args: Any) -> Placement:
        held["levelled"] = level(*args)
        return held["levelled"]

    monkeypatch.setattr(auto, "solve_with_bounds", kept_portfolio)
    monkeypatch.setattr(search, "levelled", kept_level)
    return held


@pytest.mark.parametrize(
    ("objective", "domains"),
    [(objective, domains) for objective in OBJECTIVES for domains in (2, 1)[: 1 if objective.robust else 2]],
    ids=str,
)
@pytest.mark.parametrize("rule", RULES)
def test_no_step_keeps_what_the_objective_calls_worse(
    rule: str, objective: Objective, domains: int, held: dict[str, Placement]
) -> None:
    """Layer by layer; where a layer's price depends on other layers, beside the rows that were settled."""
    problem = question(rule, domains, objective=objective)
    found_L = seconds_L(problem, find_placement(problem, Search()).placement)
    assert (found_L <= seconds_L(problem, held["levelled"]) * ROUNDING).all()
    if rule not in ACROSS_LAYERS:
        assert (found_L <= seconds_L(problem, held["portfolio"]) * ROUNDING).all()


@pytest.mark.parametrize("rule", ["even", "hashed", "nearest-static"])
def test_dispersal_costs_no_more_than_its_price(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less work after a loss may cost half a percent of the objective before it."""
    problem = question(rule, 2, slots_per_gpu=7, survive=Survival(gpus=1))
    dispersed = find_placement(problem, Search()).placement
    monkeypatch.setattr(search, "disperse", lambda _, expert_LP, *rest: expert_LP)
    plain = find_placement(problem, Search()).placement
    assert (dispersed.expert_LP != plain.expert_LP).any()
    assert (seconds_L(problem, dispersed) <= seconds_L(problem, plain) * (1 + PRICE_OF_DISPERSAL)).all()


@pytest.mark.parametrize("domains", [1, 2])
@pytest.mark.parametrize("rule", ["row-index", "nearest-static", "hashed"])
def test_a_replan_is_no_worse_than_what_runs(rule: str, domains: int, held: dict[str, Placement]) -> None:
    """Whatever moves are spent on, and though the search looks at the rule's expectation."""
    problem = question(rule, domains)
    find_placement(problem, Search())
    old, other = held["levelled"], find_method("greedy")(in_expectation(problem))
    found = replanned(problem, CurrentPlacement(old, "old.json"), other)
    assert violations(problem, found) == []
    assert seconds_L(problem, found).sum() <= seconds_L(problem, old).sum() * ROUNDING
