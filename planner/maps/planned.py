"""Whether a map is the plan's: rows held against rows in the numbering of the map's own format.

Shapes: P slots.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from planner.base import parse_json, parse_yaml
from planner.engines import MapFile, find_format
from planner.maps.beside import Beside
from planner.maps.claims import spans
from planner.maps.manifest import MANIFEST
from planner.maps.report import MapReport
from planner.maps.rules import whole_rows
from planner.model import ModelSpec
from planner.plan import SavedPlan
from planner.problem import Violation

Rows = dict[int, list[int]]


def other_shape(found: MapFile, bare: MapReport, saved: SavedPlan) -> str:
    """In what a map is of another question than the plan's: slots, experts, devices; empty where in none.

    `bare`: what is known of the map by itself.
    """
    problem = saved.problem
    pairs = {
        "slots a layer": (bare.facts["slots"], problem.slots),
        "experts": (bare.facts["experts"], problem.model.experts),
        "devices": (found.gpus or problem.gpus, problem.gpus),
    }
    return "; ".join(f"{has} {what}, planned {had}" for what, (has, had) in pairs.items() if has != had)


def other_rows(found: MapFile, named: str, saved: SavedPlan, plan: str) -> Violation | None:
    """Which of the plan's rows, dense and draft ones as far as the format has them, the map has not."""
    model = saved.problem.model
    planned = whole_rows(_planned(named, saved)[1], model, [])
    rows = whole_rows(found, model, [])
    absent = tuple(layer for layer in planned if layer not in rows)
    other = tuple(layer for layer, row in planned.items() if layer in rows and rows[layer] != row)
    if not other and not absent:
        return None
    told = f"another map than {plan}'s"
    if other:
        told += f": {len(other)} of {len(planned)} rows differ, layer {spans(other)}"
    if absent:
        told += f"{';' if other else ':'} no row for layer {spans(absent)}"
    if not other:
        return Violation("other-map", told, absent[0])
    violation, cell = _first_cell(rows, planned, other[0], saved.placement.slots_per_gpu)
    return replace(violation, text=f"{told}; {cell}{_moved(rows, planned, other, model)}")


def other_values(value: Any, named: str, saved: SavedPlan) -> Iterator[str]:
    """What else than rows the file has otherwise than it would be written today."""
    planned, _ = _planned(named, saved)
    if not isinstance(value, dict) or not isinstance(planned, dict):
        return
    for key in planned:
        pair = (value.get(key), planned[key])
        if None not in pair and pair[0] != pair[1] and not any(isinstance(one, (dict, list)) for one in pair):
            yield f"{key} is {repr(pair[0])[:40]}, the plan's map has {repr(pair[1])[:40]}"


def other_bytes(near: Beside, violation: Violation | None) -> tuple[Violation | None, str]:
    """What the list of digests adds to the comparison with the plan: a violation, and a note or nothing."""
    if near.map_changed and near.plan_changed:
        both = f"neither the map nor {near.plan_file} has the bytes that {MANIFEST} lists"
        text = f"{violation.text}; {both}" if violation else f"{both}: emit the plan again"
        return replace(violation or Violation("changed", ""), text=text), ""
    if violation:
        whose = f"{near.plan_file} was" if near.plan_changed else "it was" if near.map_changed else ""
        return replace(
            violation,
            text=f"{violation.text}; {whose} changed after the emission" if whose else violation.text,
        ), ""
    if near.map_changed:
        return None, f"its bytes are not those that {MANIFEST} lists; its rows are the plan's"
    if near.plan_changed:
        return None, f"{near.plan_file} was changed after the emission; the map was not, and has its rows"
    listed = near.manifest is None or near.name is not None
    return None, "" if listed else f"{MANIFEST} does not list it: it was not emitted here"


def _planned(named: str, saved: SavedPlan) -> tuple[Any, MapFile]:
    """The map that the plan has in this format, as its file would be read."""
    wanted, placement = find_format(named), saved.placement
    rows = dict(zip(placement.layer_ids, placement.expert_LP.tolist(), strict=True))
    text = wanted.map_text(rows, saved.problem.model, saved.problem.gpus)
    value = parse_json(text, named) if text[:1] in {"{", "["} else parse_yaml(text, named)
    found = wanted.read_map(value)
    assert found is not None, f"{named} does not read what it writes"
    return value, found


def _first_cell(rows: Rows, planned: Rows, layer: int, slots_per_gpu: int) -> tuple[Violation, str]:
    pairs = zip(rows[layer], planned[layer], strict=True)
    slot, has, had = next((slot, *pair) for slot, pair in enumerate(pairs) if pair[0] != pair[1])
    text = f"first in layer {layer}, slot {slot}: expert {has}, planned {had}"
    return Violation("other-map", "", layer, slot // slots_per_gpu, has), text


def _moved(rows: Rows, planned: Rows, other: tuple[int, ...], model: ModelSpec) -> str:
    """The first row that is planned for another layer, which is what counting layers wrongly does."""
    placed = [layer for layer in other if layer in model.placed_layer_ids]
    for layer in placed:
        whose = [owner for owner in placed if owner != layer and planned[owner] == rows[layer]]
        if whose:
            return f"; layer {layer} has the row of layer {whose[0]}"
    return ""
