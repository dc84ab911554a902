"""The example of docs/cost-model.md, "Objective": two placements that no histogram tells apart.

They differ over two windows.
"""

from dataclasses import replace

import numpy as np
import pytest

from planner.cost import constants_of, cost, objective_seconds_L, windows_of
from planner.load import LoadProfile
from planner.plan import Origin
from planner.planning import make_plan
from planner.problem import Objective, Problem
from planner.solvers import Search
from tests.planner.engines.examples import machine
from tests.planner.small import placed, question

A, B = [0, 1, 2, 3], [0, 2, 1, 3]
LAWS = (Objective(), Objective("worst"), Objective("risk", 1.0))


def asked(objective: Objective = LAWS[0]) -> Problem:
    """Four experts on two GPUs, morning and evening."""
    load = LoadProfile(
        np.array([[[4, 4, 1, 1]], [[1, 1, 4, 4]]], dtype=np.int64),
        (0,),
        "by hand",
        window_names=("morning", "evening"),
    )
    return replace(question([1] * 4, machine(2), 2), load=load, objective=objective)


def test_loads_are_those_of_the_page() -> None:
    """960 | 240 and 240 | 960 for A, 600 on each for B; on the sum both are level."""
    problem = asked()
    by_window = {
        name: [
            cost(problem, placed(row, problem), problem.load.with_windows([w])).load_LG[0].tolist()
            for w in (0, 1)
        ]
        for name, row in (("A", A), ("B", B))
    }
    assert by_window["A"] == [pytest.approx([960, 240]), pytest.approx([240, 960])]
    assert by_window["B"] == [pytest.approx([600, 600])] * 2
    assert all(
        cost(problem, placed(row, problem)).load_LG[0].tolist() == pytest.approx([600, 600]) for row in (A, B)
    )


@pytest.mark.parametrize("objective", LAWS, ids=lambda objective: objective.text)
def test_every_law_prefers_b(objective: Objective) -> None:
    """By compute that is proportional to 960 and 600 beyond its fixed part; and `auto` finds it."""
    problem = asked(objective)
    windows = windows_of(problem, problem.load)
    worse, better = (float(objective_seconds_L(problem, windows, placed(row, problem))[0]) for row in (A, B))
    assert better < worse
    fixed_seconds = constants_of(problem).compute.fixed_seconds
    beyond = [
        cost(problem, placed(row, problem), windows.loads[0]).compute_seconds_L[0] - fixed_seconds
        for row in (A, B)
    ]
    assert beyond[0] / beyond[1] == pytest.approx(960 / 600)
    plan = make_plan(lambda _: problem, problem.redundant, Search(), Origin())
    assert plan.fitted_objective_seconds == pytest.approx(better)


def test_weights_decide_between_mean_and_worst() -> None:
    """1,000 once and 560 three times is 670 on average, better than 700 always; its worst is not."""
    seconds_WL = np.array([[1000.0, 700.0], [560.0, 700.0]])
    assert Objective().seconds_L(seconds_WL, (1, 3), ("", "")).tolist() == [670, 700]
    assert Objective("worst").seconds_L(seconds_WL, (1, 3), ("", "")).tolist() == [1000, 700]
