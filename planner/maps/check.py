"""Judge a plan or a map file that an engine would load: one validator for every format, one report.

Shapes: L layers, P slots.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.base import BadInput
from planner.engines import MapFile, find_engine, map_formats
from planner.maps.read import find_map, plan_beside, problem_beside, read_value
from planner.maps.report import MapReport
from planner.maps.rules import cell_violations, clean_sizes, layer_violations, rows_LP, whole_rows
from planner.maps.served import map_violations, plan_violations
from planner.model import ModelSpec, find_model
from planner.plan import SCHEMA, disagreements, plan_from_dict
from planner.problem import Violation


def check_file(
    path: str | Path, model_name: str | None = None, ep: int | None = None, engine: str | None = None
) -> MapReport:
    """Judge a plan or a map, also as `engine` would take it (an engine's name, or a map format's).

    BadInput where it is neither, or cannot be read. A map beside the plan it was emitted from is judged
    against that plan's model and EP size where none are given.
    """
    if engine is not None and engine not in map_formats():
        find_engine(engine)
    value = read_value(path)
    if isinstance(value, dict) and "schema" in value:
        return _plan_report(value, path, ep, engine)
    model = find_model(model_name) if model_name else None
    problem = problem_beside(path) if model is None and ep is None else None
    if problem is None:
        return check_value(value, str(path), model, ep, engine)
    report = check_value(value, str(path), problem.model, problem.gpus, engine)
    return replace(report, facts={**report.facts, "model and EP size from": str(plan_beside(path))})


def check_value(
    value: Any, where: str, model: ModelSpec | None = None, gpus: int | None = None, engine: str | None = None
) -> MapReport:
    """Judge parsed JSON or YAML; BadInput where it is no engine's map.

    Without `model` the expert count is inferred; without `gpus` it is not known which slots share a GPU.
    """
    named, found = find_map(value, where, prefer=engine)
    report = judge(found, model, gpus)
    if engine is None:
        return report
    more = map_violations(engine, named, model, int(report.facts["slots"]), gpus or found.gpus)
    return replace(report, violations=(*report.violations, *more))


def judge(found: MapFile, model: ModelSpec | None, gpus: int | None) -> MapReport:
    """Every rule on one map. At most one violation for a layer and rule."""
    if gpus is not None and gpus < 1:
        raise BadInput(f"EP size {gpus}: it must be at least 1")
    broken = [Violation("format", problem) for problem in found.problems]
    if gpus and found.gpus and gpus != found.gpus:
        broken.append(Violation("gpus", f"the map is for {found.gpus} devices, not for an EP size of {gpus}"))
    gpus = gpus or found.gpus
    rows = whole_rows(found, model, broken)
    if model is not None:
        broken += layer_violations(found, model)
    experts = model.experts if model else 0
    facts: dict[str, int | str] = {"layers": len(found.rows), "slots": found.slots or 0, "experts": experts}
    facts["experts from"] = "the model" if model else "the largest id + 1"
    if gpus:
        facts["EP size"] = gpus
    if rows:
        expert_LP = rows_LP(rows)
        experts = experts or int(expert_LP.max()) + 1
        facts |= {"slots": expert_LP.shape[1], "experts": experts}
        broken += cell_violations(rows, experts, gpus, model)
        if not gpus:
            facts["EP sizes without duplicates"] = ", ".join(map(str, clean_sizes(expert_LP))) or "none"
    return MapReport(found.kind, tuple(broken), tuple(_unchecked(model, gpus)), facts)


def _unchecked(model: ModelSpec | None, gpus: int | None) -> Iterator[str]:
    if model is None:
        yield "that the map has the model's experts, and a row for each of its layers: name the model"
    if gpus is None:
        yield "that no expert sits twice on one GPU, and that slots divide over GPUs: give the EP size"


def _plan_report(value: dict[str, Any], path: str | Path, ep: int | None, engine: str | None) -> MapReport:
    problem, placement, plan = plan_from_dict(value, str(path))
    broken = [Violation("figures", text) for text in disagreements(problem, placement, plan)]
    if ep is not None and ep != problem.gpus:
        broken.insert(0, Violation("gpus", f"the plan is for an EP size of {problem.gpus}, not {ep}"))
    if engine is not None:
        broken += plan_violations(engine, problem)
    facts: dict[str, int | str] = {
        "model": problem.model.name,
        "layers": len(placement.layer_ids),
        "slots": placement.slots,
        "EP size": problem.gpus,
    }
    return MapReport(f"plan ({SCHEMA})", tuple(broken), (), facts)
