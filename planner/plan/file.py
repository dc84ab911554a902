"""The plan file: a Plan as JSON and back. The file is the truth; what engines load is made from it."""

from pathlib import Path
from typing import Any

from planner.base import read_json, write_json
from planner.cost import cost
from planner.placement import Placement
from planner.plan.figures_to_dict import cost_to_dict
from planner.plan.from_dict import SavedPlan, plan_from_dict
from planner.plan.plan import Plan
from planner.plan.rests_on import constants_to_dict
from planner.plan.to_dict import plan_to_dict
from planner.problem import Problem

EMITTED_PLAN = "plan.json"  # the copy of the plan that lies beside what was emitted from it


def write_plan(plan: Plan, path: str | Path) -> Path:
    """Write the plan, whole or not at all."""
    return write_json(path, plan_to_dict(plan))


def read_plan(path: str | Path) -> SavedPlan:
    """The question, the placement and the whole file.

    BadInput where the file is not a plan, or its placement breaks a rule.
    """
    return plan_from_dict(read_json(path), str(path))


def disagreements(problem: Problem, placement: Placement, value: dict[str, Any]) -> list[str]:
    """Reported figures that differ from recomputed ones.

    Seconds of a traced load are not recomputed: the trace is not in the file. Nor are those that rest on
    other constants than today's, as an older file's do.
    """
    reported, found = value["predicted"]["fitted"], cost_to_dict(cost(problem, placement))
    same_seconds = not value["load"]["traced"] and value.get("constants") == constants_to_dict(problem)
    keys = ["max_over_mean", "cross_node_share", *(["total_seconds"] if same_seconds else [])]
    return [
        f"predicted.fitted.{key} is {reported.get(key)!r}, recomputed it is {found[key]!r}"
        for key in keys
        if not (
            isinstance(reported.get(key), (int, float))
            and abs(reported[key] - found[key]) <= 1e-9 * abs(found[key]) + 1e-15
        )
    ]
