"""What a plan says of its distance to the bounds: by part, in the report and in the file.

In seconds and in balance.
"""

import io

import numpy as np
import pytest
from rich.console import Console

from planner.bounds import PARTS
from planner.plan import judged, plan_to_dict
from planner.report.headline import layer_ranges
from planner.report.plan import plan_report
from tests.planner.small import BEST_ROW, placed, question

PLAN_B = [0, 1, 0, 1, 2, 3, 2, 3]  # the hot experts on one node


def test_the_parts_of_the_gap_are_the_gap() -> None:
    """Seconds above the bound by part sum to the whole, none is below; a plan at the bound has none."""
    problem = question()
    good, poor = (judged(problem, placed(row, problem)) for row in (BEST_ROW, PLAN_B))
    assert good.gap_seconds_share == pytest.approx(0, abs=1e-9)
    assert poor.gap_seconds_share * poor.bound_seconds == pytest.approx(sum(poor.gap_seconds.values()))
    assert poor.gap_seconds_share == pytest.approx(154.9258 / 130.8508 - 1, abs=1e-5)
    assert all(poor.gap_seconds[part] > 0 for part in PARTS)
    assert (good.balanced_L.tolist(), poor.balanced_L.tolist()) == ([True], [False])
    assert (good.fastest_L.tolist(), poor.fastest_L.tolist()) == ([True], [False])


def test_the_file_has_bound_gap_and_reason_of_each_part() -> None:
    """Per layer seconds and names; what is proven of each layer."""
    problem = question()
    bound = plan_to_dict(judged(problem, placed(PLAN_B, problem), optimal_L=np.array([False])))["bound"]
    assert bound["total_seconds"] == pytest.approx(130.8508e-6, rel=1e-6)
    assert bound["gap_seconds_share"] == pytest.approx(0.1840, abs=1e-4)
    assert bound["parts"]["dispatch"]["seconds"] == [pytest.approx(21.95474e-6, rel=1e-5)]
    assert bound["parts"]["compute"] == {
        "gap_seconds": pytest.approx(15.5622e-6, rel=1e-4),
        "seconds": [pytest.approx(85.3766e-6)],
        "reason": ["busiest GPU"],
    }
    assert (bound["proven_balance"], bound["proven_time"], bound["proven_objective"]) == (
        [False],
        [False],
        [False],
    )


def test_the_report_says_what_bounds_each_part() -> None:
    """The gap, its parts and their reasons, and which layers are proven."""
    problem, text = question(), ""
    for row, optimal in ((BEST_ROW, True), (PLAN_B, False)):
        plan = judged(
            problem,
            placed(row, problem),
            optimal_L=np.array([optimal]),
            baselines={"plan B": (problem, placed(PLAN_B, problem))},
        )
        console = Console(width=300, file=io.StringIO())
        console.print(plan_report(plan, details=True))
        text += console.file.getvalue()  # type: ignore[attr-defined]
    assert (
        "the step is 18.4% above that: dispatch 3.2% (bound by: all nic in), "
        "compute 11.9% (bound by: busiest GPU)" in text
    )
    assert (
        "proven optimal for balance: layer 0; for time on the fitted load: layer 0; "
        "for the objective over windows: layer 0" in text
    )
    assert (
        "proven optimal for balance: no layer; for time on the fitted load: no layer; "
        "for the objective over windows: no layer" in text
    )


def test_layers_are_named_in_ranges() -> None:
    """As a person would."""
    assert layer_ranges([3]) == "layer 3"
    assert layer_ranges([0, 1, 2, 4, 7, 8]) == "layers 0-2, 4, 7-8"
