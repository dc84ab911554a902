"""The verbs of planning for other programs: nouns or their names in, nouns out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planner.base import BadInput
from planner.cost import Cost
from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.plan import Plan
from planner.planning.answer import answer
from planner.planning.evaluation import Anew, re_evaluate
from planner.planning.request import PlanRequest
from planner.problem import Problem
from planner.solvers import Progress
from planner.topology import Topology

Paths = str | Path | Sequence[str | Path]


def solve(
    model: str | ModelSpec,
    topology: str | Topology | None = None,
    load: Paths | LoadProfile = (),
    *,
    progress: Progress | None = None,
    **asked: Any,
) -> Plan:
    """The plan that `moeplan solve` makes.

    `asked`: other fields of PlanRequest, such as redundant=16, engine="sglang", phase="prefill", ep=8.
    BadInput names what is not found or cannot be; Infeasible says what would be.
    """
    unknown = set(asked) - set(PlanRequest.__dataclass_fields__)
    if unknown:
        known = ", ".join(sorted(PlanRequest.__dataclass_fields__))
        raise BadInput(f"solve takes no {min(unknown)!r}; it takes {known}")
    files = load if isinstance(load, LoadProfile) else _paths(load)
    return answer(PlanRequest(model, topology, files, **asked), progress)


def evaluate(
    plan_file: str | Path, load: Paths = (), topology: str | None = None, engine: str | None = None
) -> tuple[Problem, Cost, tuple[str, ...]]:
    """(the question, the plan's cost under it, notes) on another load, machine or engine."""
    return re_evaluate(Path(plan_file), Anew(_paths(load), topology, engine))


def _paths(given: Paths) -> tuple[Path, ...]:
    return (Path(given),) if isinstance(given, str | Path) else tuple(map(Path, given))
