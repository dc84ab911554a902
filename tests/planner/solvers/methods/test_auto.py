"""The portfolio: candidates one after the other, the best row of every layer kept."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from planner.placement import Placement
from planner.problem import Problem
from planner.solvers import find_candidates, find_method, peaks
from planner.solvers.methods import auto
from tests.strategies import problem_of

PROBLEM = problem_of([[900, 1, 1, 1], [5, 4, 3, 2]], gpus=2, slots_per_gpu=3)


def rows(*layers: list[int]) -> Placement:
    return Placement(np.array(layers), PROBLEM.model.placed_layer_ids, 2)


GOOD, BAD = [0, 1, 2, 0, 1, 3], [0, 1, 2, 1, 2, 3]  # of the first layer: its hot expert twice, or once


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A portfolio of one method with three candidates; the list says which were asked for."""
    asked: list[str] = []

    def candidates(problem: Problem, **_: Any) -> Iterator[Placement]:
        for name, placement in (("a", rows(BAD, BAD)), ("b", rows(GOOD, BAD)), ("c", rows(BAD, GOOD))):
            asked.append(name)
            yield placement

    monkeypatch.setattr(auto, "PORTFOLIO", ("made up",))
    monkeypatch.setattr(auto, "find_candidates", lambda _: candidates)
    monkeypatch.setattr(auto, "_worth_cpsat", lambda *_: False)
    return asked


def test_every_layer_gets_its_best_candidate(offered: list[str]) -> None:
    """The first layer's from the second, the second layer's from whichever has the lower peak.

    A tie stays with the earlier.
    """
    found = auto.solve(PROBLEM)
    assert offered == ["a", "b", "c"]
    peak_L = np.minimum.reduce([peaks(PROBLEM.shares_LE, rows(row, row).expert_LP, 2) for row in (GOOD, BAD)])
    assert peaks(PROBLEM.shares_LE, found.expert_LP, 2).tolist() == peak_L.tolist()
    assert found.expert_LP[0].tolist() == GOOD


def test_a_budget_that_is_over_leaves_candidates_out(offered: list[str]) -> None:
    """All but the first ones, which take milliseconds."""
    auto.solve(PROBLEM, budget_seconds=0.0)
    assert offered == ["a", "b"]


def test_ctrl_c_gives_the_best_so_far(offered: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """After the candidates, before the proof; and nothing before the first of them is scored."""

    def pressed(*_: Any) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(auto, "_worth_cpsat", pressed)
    solved = auto.solve_with_bounds(PROBLEM)
    assert solved.stopped == "after 3 candidates"
    assert solved.placement.expert_LP[0].tolist() == GOOD
    with pytest.raises(KeyboardInterrupt):
        auto.solve_with_bounds(PROBLEM, score=pressed)  # type: ignore[arg-type]


def test_a_method_without_candidates_offers_its_answer() -> None:
    """Once."""
    (only,) = find_candidates("greedy")(PROBLEM)
    assert only.expert_LP.tolist() == find_method("greedy")(PROBLEM).expert_LP.tolist()
