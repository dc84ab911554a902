"""The placement that runs now (`--from`), and how many moves away from it are allowed (`--max-moves`).

It is read from a plan or from any engine's map file.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from planner.base import BadInput
from planner.engines import cyclic_placement
from planner.maps import find_map, judge, read_value, rows_LP, rows_of
from planner.model import ModelSpec
from planner.placement import Placement
from planner.plan import SCHEMA, plan_from_dict
from planner.topology import Topology

MOVES = re.compile(r"([0-9]+)|([0-9]*\.?[0-9]+)\s*%")


@dataclass(frozen=True, eq=False)
class Running:
    """A placement that runs. `topology` is None where a map names no machine."""

    placement: Placement
    topology: Topology | None = None


def read_running(path: Path, model: ModelSpec, gpus: int) -> Running:
    """The previous placement of `model`: on the GPUs that the file names, else on `gpus`.

    BadInput where it is of another model. A layer without a row (draft layers in some engines' maps) holds
    the engine's trivial one, expert p % E in slot p.
    """
    value = read_value(path)
    if isinstance(value, dict) and value.get("schema") == SCHEMA:
        problem, placement, _ = plan_from_dict(value, str(path))
        _refuse_other_model(path, problem.model, model)
        return Running(placement, problem.topology)
    return Running(_mapped(path, value, model, gpus))


def parse_moves(text: str, slots: int) -> int:
    """Moves of '20', or of '7%' of all `slots` over layers, rounded down.

    >>> parse_moves("7%", 288 * 58)
    1169
    """
    match = MOVES.fullmatch(text.strip())
    if not match or (match[2] and float(match[2]) > 100):
        raise BadInput(
            f"--max-moves {text!r}: give a whole number of moves over all layers, "
            "or a share of all slots from 0% to 100%"
        )
    return int(match[1]) if match[1] else int(slots * float(match[2]) / 100)


def _mapped(path: Path, value: object, model: ModelSpec, gpus: int) -> Placement:
    _, found = find_map(value, str(path))
    gpus = found.gpus or gpus
    report = judge(found, model, gpus)
    if not report.ok:
        raise BadInput(f"--from {path}: not a placement of {model.name} on {gpus} GPUs: {report.problems[0]}")
    rows = rows_of(found, model)
    slots = len(next(iter(rows.values())))
    trivial_P = cyclic_placement(model, gpus, slots - model.experts).expert_LP[0].tolist()
    layers = {layer: rows.get(layer, trivial_P) for layer in model.placed_layer_ids}
    return Placement(rows_LP(layers), model.placed_layer_ids, gpus)


def _refuse_other_model(path: Path, found: ModelSpec, asked: ModelSpec) -> None:
    if (found.experts, found.placed_layer_ids) != (asked.experts, asked.placed_layer_ids):
        raise BadInput(
            f"--from {path}: it places {found.name}, "
            f"{len(found.placed_layer_ids)} layers of {found.experts} experts; "
            f"{asked.name} has {len(asked.placed_layer_ids)} of {asked.experts}: "
            "plan this model without --from"
        )
