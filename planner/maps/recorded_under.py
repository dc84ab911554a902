"""The map a load was recorded under, from a plan or any engine's map file: what `--map` names."""

from pathlib import Path

from planner.base import BadInput
from planner.load import TORCH_SUFFIXES, SlotMap, read_torch, slot_map
from planner.maps.read import find_map, read_value
from planner.maps.rules import cell_violations, whole_rows
from planner.model import ModelSpec
from planner.plan import SCHEMA, plan_from_dict
from planner.problem import Violation

MAP_KEYS = ("physical_to_logical_map", "last_physical_to_logical_map")


def read_slot_map(path: Path, model: ModelSpec) -> SlotMap:
    """Which expert of `model` sat in which slot.

    BadInput where a row breaks a rule, so that no count can be given to the wrong expert.
    """
    if path.suffix.lower() in TORCH_SUFFIXES:
        return slot_map(_rows_of_tensors(path), str(path), model.experts)
    value = read_value(path)
    if isinstance(value, dict) and value.get("schema") == SCHEMA:
        problem, placement, _ = plan_from_dict(value, str(path))
        if problem.model.experts != model.experts:
            planned = f"{problem.model.name} with {problem.model.experts} experts"
            raise BadInput(f"{path}: the plan is of {planned}, but {model.name} has {model.experts}")
        return slot_map(placement.expert_LP, str(path), model.experts, placement.layer_ids)
    _, found = find_map(value, str(path))
    broken: list[Violation] = []
    rows = whole_rows(found, model, broken)
    if rows and not broken:
        broken += cell_violations(rows, model.experts, None, model)
    if broken or not rows:
        raise BadInput(f"{path}: {broken[0].text if broken else 'the map has no rows'}")
    return slot_map(list(rows.values()), str(path), model.experts, tuple(rows))


def _rows_of_tensors(path: Path) -> object:
    """A map saved by PyTorch: alone, or under the key that SGLang gives it."""
    value = read_torch(path)
    if isinstance(value, dict):
        value = next((value[key] for key in MAP_KEYS if key in value), None)
    if value is None:
        raise BadInput(
            f"{path}: holds no map; expected a tensor [layer, slot], alone or under {' or '.join(MAP_KEYS)}"
        )
    return value
