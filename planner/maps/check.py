"""Judge a plan or a map file that an engine would load: one validator for every format, one report.

Shapes: L layers, P slots.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from planner.base import BadInput
from planner.cost import does_not_fit
from planner.engines import MapFile, find_engine, map_formats
from planner.maps.beside import Beside, beside
from planner.maps.claims import contradictions
from planner.maps.manifest import MANIFEST
from planner.maps.planned import other_bytes, other_rows, other_shape, other_values
from planner.maps.read import find_map, read_value
from planner.maps.report import MapReport
from planner.maps.rules import cell_violations, clean_sizes, layer_violations, rows_LP, whole_rows
from planner.maps.served import map_violations, plan_verdict, stand_in_note
from planner.model import ModelSpec, find_model
from planner.plan import SCHEMA, SavedPlan, disagreements, plan_from_dict
from planner.problem import Violation, exposure


class Asked(NamedTuple):
    """What a person says of a file, and the engine and role that it is for."""

    model: str | None = None
    ep: int | None = None
    engine: str | None = None
    role: str = "mixed"
    plugin: bool = False  # that makes the engine serve a plan


def check_one(path: str | Path, asked: Asked) -> MapReport:
    """Judge a plan or a map. BadInput where it is neither, or cannot be read.

    A map beside the plan it was emitted from is judged by that plan's model and EP size, and held against its
    rows and the emission's digests.
    """
    if asked.engine is not None and asked.engine not in map_formats():
        find_engine(asked.engine)
    value = read_value(path)
    if isinstance(value, dict) and "schema" in value:
        return _plan_report(value, path, asked)
    near = beside(Path(path))
    if near.saved is not None:
        return _with_plan(value, path, near, near.saved, asked)
    if near.fault and asked.model is None and asked.ep is None:
        raise BadInput(near.fault)
    return _alone(value, path, near, asked)


def _alone(value: Any, path: str | Path, near: Beside, asked: Asked) -> MapReport:
    """A map without its plan: by what is said of it, and by its digest where an emission lists it."""
    model = find_model(asked.model) if asked.model else None
    report = check_value(value, str(path), model, asked.ep, asked.engine)
    unread = (f"that it is the plan's map: {near.fault}",) if near.fault else ()
    if near.map_changed and report.ok:
        text = f"its bytes are not those that {MANIFEST} lists, and there is no plan to hold its rows against"
        report = replace(report, violations=(Violation("changed", text),))
    return replace(report, unchecked=(*report.unchecked, *unread))


def _with_plan(value: Any, path: str | Path, near: Beside, saved: SavedPlan, asked: Asked) -> MapReport:
    """A map beside its plan: by the plan's model and EP size, and row by row."""
    problem, plan = saved.problem, str(near.plan_file)
    named, found = find_map(value, str(path), prefer=asked.engine)
    bare = judge(found, None, None)
    claims = tuple(contradictions(problem, plan, asked.model, asked.ep))
    shape = other_shape(found, bare, saved) if bare.ok else ""
    if shape:
        other = Violation("other-map", f"another map than {plan}'s: {shape}")
        return replace(bare, violations=(*claims, other), unchecked=())
    report = check_value(value, str(path), problem.model, problem.gpus, asked.engine)
    other_row, note = other_bytes(near, other_rows(found, named, saved, plan) if bare.ok else None)
    broken = (*claims, *([other_row] if other_row else ()), *report.violations)
    if not bare.ok or other_row:
        return replace(report, violations=broken, facts=_sources(report, plan, asked))
    notes = (*([note] if note else ()), *other_values(value, named, saved))
    facts = {**_sources(report, plan, asked), "same rows as": plan}
    return replace(report, violations=broken, notes=notes, facts=facts)


def _sources(report: MapReport, plan: str, asked: Asked) -> dict[str, int | str]:
    said = asked.model is not None or asked.ep is not None
    return {**report.facts, **({} if said else {"model and EP size from": plan})}


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


def _plan_report(value: dict[str, Any], path: str | Path, asked: Asked) -> MapReport:
    problem, placement, plan = plan_from_dict(value, str(path))
    broken = list(contradictions(problem, "the plan", asked.model, asked.ep))
    broken += [Violation("figures", text) for text in disagreements(problem, placement, plan)]
    notes: tuple[str, ...] = ()
    if asked.engine is None and (too_little := does_not_fit(problem, value.get("engine"))):
        broken.append(Violation("memory-fits", too_little))
    if asked.engine is not None:
        more, notes = plan_verdict(asked.engine, problem, asked.role, plugin=asked.plugin)
        broken += more
        notes += () if broken else tuple(stand_in_note(asked.engine, problem, placement))
    facts: dict[str, int | str] = {
        "model": problem.model.name,
        "layers": len(placement.layer_ids),
        "slots": placement.slots,
        "EP size": problem.gpus,
    }
    return MapReport(f"plan ({SCHEMA})", tuple(broken), (), facts, notes, exposure(problem, placement))
