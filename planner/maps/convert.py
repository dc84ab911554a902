"""From one map file to another: the same rows, in the numbering of another engine.

What the other format cannot hold is said, never dropped in silence.
Shapes: P slots.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from planner.base import BadInput, parse_json, write_atomic
from planner.engines import MapFile, engine_names, find_engine, find_format, plugin_engines
from planner.maps.beside import problem_beside
from planner.maps.check import judge
from planner.maps.read import find_map, read_value
from planner.maps.rules import whole_rows
from planner.model import ModelSpec, find_model
from planner.plan import SCHEMA, plan_from_dict

WITH_EP_SIZE = {"vllm_ascend", "vllm_plugin"}  # formats whose file states it


@dataclass(frozen=True)
class Conversion:
    """The text of the new map and what to know of it; a note that begins with WARNING must be shown."""

    text: str
    notes: tuple[str, ...]


def convert_file(
    path: Path, target: str, source: str | None = None, model_name: str | None = None, ep: int | None = None
) -> Conversion:
    """A map, or a plan, as a map of `target`.

    BadInput where it breaks a rule, where `source` is not its format, or where model or EP size is missing.
    A map beside the plan it was emitted from has that plan's model and EP size where none are given.
    """
    find_map_format(target)
    value = read_value(path)
    if isinstance(value, dict) and value.get("schema") == SCHEMA:
        problem, placement, _ = plan_from_dict(value, str(path))
        rows = dict(zip(placement.layer_ids, placement.expert_LP.tolist(), strict=True))
        return convert_rows(rows, target, problem.model, problem.gpus)
    found = _map_of(value, path, source)
    model, ep = _facts(path, model_name, ep)
    report = judge(found, model, ep)
    if not report.ok:
        count = len(report.problems)
        more = f" (and {count - 1} more)" if count > 1 else ""
        raise BadInput(f"{path}: {report.problems[0]}{more}")
    converted = convert_rows(rows_of(found, model), target, model, ep or found.gpus)
    unchecked = (f"not checked: {line}" for line in report.unchecked)
    return Conversion(converted.text, (*converted.notes, *unchecked))


def _map_of(value: Any, path: Path, source: str | None) -> MapFile:
    """The map in a parsed file. BadInput where it is not of the format `source`."""
    if source is not None:
        find_map_format(source)
    named, found = find_map(value, str(path), prefer=source)
    if source is not None and named != source:
        of, expected = find_format(named).TITLE, find_format(source).TITLE
        raise BadInput(f"{path}: this is a map of {of}, not {expected}; use --from {named}")
    return found


def write_map(converted: Conversion, target: str, output: Path) -> Path:
    """The new map at `output`: as text, or as arrays where its name ends in .npz.

    Only the balancers' tensors can be arrays.
    """
    if output.suffix.lower() != ".npz":
        return write_atomic(output, converted.text)
    if target != "eplb":
        title = find_format(target).TITLE
        raise BadInput(f"{output}: {title} is text; name it .yaml or .json (only --to eplb has arrays)")
    lists = parse_json(converted.text, str(output))
    arrays: dict[str, Any] = {name: np.array(value, dtype=np.int64) for name, value in lists.items()}
    content = io.BytesIO()
    np.savez(content, **arrays)
    return write_atomic(output, content.getvalue())


def find_map_format(name: str) -> None:
    """BadInput where there is no such format, with the reason for an engine that reads no map."""
    if name in engine_names() and not hasattr(find_engine(name), "MAP_NAME"):
        found = find_engine(name)
        plugin = name in plugin_engines()
        instead = "makes its balancer follow the plan" if plugin else "writes what it takes in its place"
        flag = " --plugin" if plugin else ""
        emit = f"`moeplan emit PLAN --engine {name}{flag}`"
        raise BadInput(f"{found.TITLE} {found.VERSION} reads no map file; {emit} {instead}")
    find_format(name)


def rows_of(found: MapFile, model: ModelSpec) -> dict[int, list[int]]:
    """Rows by absolute layer id of a map that was judged to be good."""
    return whole_rows(found, model, [])


def convert_rows(rows: dict[int, list[int]], target: str, model: ModelSpec, gpus: int | None) -> Conversion:
    """Rows by absolute layer id as a map of `target`. BadInput where it needs the EP size.

    Layers that it wants and the rows have not get the trivial row.
    """
    wanted = find_format(target)
    if gpus is None and target in WITH_EP_SIZE:
        raise BadInput(f"{wanted.TITLE} lists experts by device: give the EP size with --ep")
    slots = len(next(iter(rows.values())))
    trivial_P = [slot % model.experts for slot in range(slots)]
    whole = {layer: rows.get(layer, trivial_P) for layer in {*rows, *model.placed_layer_ids}}
    return Conversion(wanted.map_text(whole, model, gpus or 1), tuple(_notes(rows, trivial_P, target, model)))


def _notes(rows: dict[int, list[int]], trivial_P: list[int], target: str, model: ModelSpec) -> Iterator[str]:
    wanted = find_format(target)
    held = wanted.held_layers(model)
    lost = [layer for layer, row in rows.items() if layer not in held and row != trivial_P]
    if lost:
        layers = ", ".join(map(str, lost))
        instead = "left out, the engine serves its default placement there"
        yield f"WARNING: {wanted.TITLE}'s map has no row for layer {layers}: {instead}"
    made = [layer for layer in held if layer in model.placed_layer_ids and layer not in rows]
    if made:
        layers = ", ".join(map(str, made))
        yield f"layer {layers} has no row in the source and got the trivial one (expert p % E in slot p)"
    if target in engine_names() and not find_engine(target).reads_map(model):
        unread = f"does not read a map for {model.architecture}"
        yield f"WARNING: {wanted.TITLE} {unread}: it would ignore this file"


def _facts(path: Path, model_name: str | None, ep: int | None) -> tuple[ModelSpec, int | None]:
    if model_name:
        return find_model(model_name), ep
    problem = problem_beside(path)
    if problem is None:
        raise BadInput(
            f"{path}: a map does not say which layers its rows are for: name the model with --model"
        )
    return problem.model, ep or problem.gpus
