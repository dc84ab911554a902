"""A saved plan of plain values, as its file holds them: checked by its shape, then part against part."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from planner.base import BadInput, shown
from planner.load import LoadProfile
from planner.model import ModelSpec, body_from_dict, find_model, model_names
from planner.placement import Placement
from planner.plan.plan_shape import PLAN
from planner.problem import Objective, Problem, Workload, parse_survival, violations
from planner.topology import topology_from_dict


class SavedPlan(NamedTuple):
    """A plan as its file has it: the question, the placement, and the whole file as plain values."""

    problem: Problem
    placement: Placement
    value: dict[str, Any]


def plan_from_dict(value: Any, where: str) -> SavedPlan:
    """BadInput where the value is no plan, or its placement breaks a rule."""
    PLAN.check(value, where)
    problem = _problem(value, where)
    placement = _placement(value["placement"], problem, where)
    broken = violations(problem, placement)
    if broken:
        more = f" ({len(broken) - 1} more)" if len(broken) > 1 else ""
        raise BadInput(f"{where}: {broken[0].text}{more}")
    return SavedPlan(problem, placement, value)


def _problem(value: dict[str, Any], where: str) -> Problem:
    model = _model(value["model"], where)
    load = _load(value["load"], model, f"{where}: load")
    workload = Workload(**value["workload"])
    topology = topology_from_dict(value["topology"], f"{where}: topology")
    if topology.gpu_count != value["gpus"]:
        raise BadInput(f"{where}: 'gpus' is {value['gpus']}, the plan's topology has {topology.gpu_count}")
    return Problem(
        topology,
        model,
        load,
        workload,
        value["slots_per_gpu"],
        value["replica_rule"],
        float(value.get("kv_floor_bytes", 0)),
        parse_survival(value["survive"], f"{where}: survive") if value.get("survive") else None,
        Objective(**value.get("objective", {})),
        value.get("resplittable", False),
    )


def _model(value: dict[str, Any], where: str) -> ModelSpec:
    facts: dict[str, Any] = {
        key: tuple(entry) if isinstance(entry, list) else entry for key, entry in value.items()
    }
    if facts.get("body") is not None:
        facts["body"] = body_from_dict(facts["body"], f"{where}: model: body")
    return _with_body(ModelSpec(**facts))


def _with_body(model: ModelSpec) -> ModelSpec:
    """An older file says nothing outside the experts: where the catalogue has the same model, it does."""
    if model.body is not None or model.name not in model_names():
        return model
    known = find_model(model.name)
    same = replace(known, body=None, source=model.source, quant_method=model.quant_method) == model
    return replace(model, body=known.body) if same else model


def _load(value: dict[str, Any], model: ModelSpec, where: str) -> LoadProfile:
    counts_LE = integers(value["counts"], where, (len(model.placed_layer_ids), model.experts))
    return LoadProfile(
        counts_LE[None].copy(),
        model.placed_layer_ids,
        value["source"],
        unmeasured_layer_ids=tuple(value.get("unmeasured_layer_ids", ())),
    )


def held_out_load(value: dict[str, Any], model: ModelSpec, where: str) -> LoadProfile | None:
    """The load that the plan was judged on, as one window; None where there was none."""
    held_out = value.get("held_out_load")
    if held_out is None:
        return None
    return _load(held_out, model, f"{where}: held_out_load")


def _placement(value: dict[str, Any], problem: Problem, where: str) -> Placement:
    expected = [str(layer) for layer in problem.model.placed_layer_ids]
    if list(value) != expected:
        missing, surplus = sorted(set(expected) - set(value), key=int), sorted(set(value) - set(expected))
        raise BadInput(
            f"{where}: placement needs one row for each of layers {expected[0]}..{expected[-1]}; "
            f"missing {missing or 'none'}, surplus {surplus or 'none'}"
        )
    slots, what = (problem.slots,), f"{where}: placement, layer"
    rows = [integers(row, f"{what} {layer}", slots) for layer, row in value.items()]
    return Placement(np.array(rows), problem.model.placed_layer_ids, problem.gpus)


def integers(value: Any, where: str, shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """`value` as whole numbers of that shape.

    BadInput names the first cell that is none (3.0 and true are none).
    """
    if not isinstance(value, list) or len(value) != shape[0]:
        what = "rows" if len(shape) > 1 else "whole numbers"
        got = len(value) if isinstance(value, list) else type(value).__name__
        raise BadInput(f"{where}: expected {shape[0]} {what}, got {got}")
    if len(shape) > 1:
        found = [integers(row, f"{where}, row {index}", shape[1:]) for index, row in enumerate(value)]
        return np.array(found)
    for index, entry in enumerate(value):
        if type(entry) is not int or abs(entry) >= 2**62:
            raise BadInput(f"{where}, entry {index}: {shown(entry)} is not a whole number")
    return np.array(value, dtype=np.int64)
