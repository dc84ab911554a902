"""The plan file: a Plan as JSON and back. The file is the truth; what engines load is made from it."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from planner.base import read_json, write_atomic, write_json
from planner.cost import cost
from planner.placement import Placement
from planner.plan.figures_to_dict import cost_to_dict
from planner.plan.from_dict import SavedPlan, plan_from_dict
from planner.plan.kept_trace import kept_file, kept_rows, traced_load
from planner.plan.plan import Plan
from planner.plan.rests_on import constants_to_dict
from planner.plan.to_dict import plan_to_dict
from planner.problem import Problem

EMITTED_PLAN = "plan.json"  # the copy of the plan that lies beside what was emitted from it


def write_plan(plan: Plan, path: str | Path) -> Path:
    """Write the plan, whole or not at all, and rows of its trace beside it where it has one."""
    kept = kept_rows(plan)
    if kept is None:
        return write_json(path, plan_to_dict(plan))
    said, content = kept
    write_atomic(kept_file(Path(path)), content)
    return write_json(path, plan_to_dict(plan) | {"traffic": asdict(said)})


def plan_files(plan: Plan, path: Path) -> list[Path]:
    """What `write_plan` writes for a plan."""
    return [path, kept_file(path)] if traced_load(plan) else [path]


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
