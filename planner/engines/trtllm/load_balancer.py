"""TensorRT-LLM's load-balancer file: rows by absolute layer id, draft layers included."""

from collections.abc import Mapping, Sequence
from typing import Any

from planner.engines.common.interface import MapFile
from planner.model import ModelSpec

MAP_NAME = "moe_load_balancer.yaml"
KEY = "initial_global_assignments"
MAP_KEYS = ("num_slots", KEY, "layer_updates_per_iter")


def map_text(rows: Mapping[int, Sequence[int]], model: ModelSpec, gpus: int) -> str:
    """Keys are absolute layer ids, draft layers included: a missing one is a KeyError when MTP is on."""
    del gpus
    slots = len(next(iter(rows.values())))
    lines = [f"num_slots: {slots}", "layer_updates_per_iter: 0", f"{KEY}:"]
    for layer in held_layers(model):
        assert len(rows[layer]) == slots
        lines.append(f"  {layer}: [{', '.join(map(str, rows[layer]))}]")
    return "\n".join([*lines, ""])


def held_layers(model: ModelSpec) -> tuple[int, ...]:
    return model.placed_layer_ids


def read_map(value: Any) -> MapFile | None:
    if not isinstance(value, dict) or not {"num_slots", KEY} & set(value):
        return None
    takes = f"TensorRT-LLM takes {', '.join(MAP_KEYS)} and refuses any other"
    problems = [f"unknown key {key!r}; {takes}" for key in value if key not in MAP_KEYS]
    slots = _slots(value, problems)
    updates = value.get("layer_updates_per_iter", 0)
    if type(updates) is not int or updates < 0:
        wanted = "expected a whole number, 0 for a placement that stays"
        problems.append(f"layer_updates_per_iter is {updates!r}; {wanted}")
    rows = _rows(value.get(KEY), problems)
    kind = "TensorRT-LLM load balancer"
    return MapFile(kind, rows, "absolute", slots=slots, needs_draft_rows=True, problems=tuple(problems))


def _slots(value: dict[Any, Any], problems: list[str]) -> int | None:
    """The row length that the file states, or None and a problem."""
    slots = value.get("num_slots")
    if type(slots) is int and slots >= 1:
        return slots
    wrong = f"num_slots is {slots!r}; expected a whole number of at least 1"
    problems.append("num_slots is missing" if slots is None else wrong)
    return None


def _rows(assignments: Any, problems: list[str]) -> tuple[tuple[int, Any], ...]:
    """The rows under keys that can be a layer id; a problem for each other key."""
    if not isinstance(assignments, dict) or not assignments:
        found = "it is missing" if assignments is None else f"it is a {type(assignments).__name__}"
        problems.append(f"{KEY} must map layer ids to rows; {found}")
        return ()
    rows = {key: row for key, row in assignments.items() if type(key) is int and key >= 0}
    wrong = [key for key in assignments if type(key) is not int or key < 0]
    problems += [f"layer key {key!r} is not a whole number of at least 0" for key in wrong]
    return tuple(rows.items())
