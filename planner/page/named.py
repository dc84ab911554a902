"""Values of a file of which the page shows some: those are checked, what else there is is let be."""

from collections.abc import Mapping
from typing import Any

from planner.base import BadInput, shown
from planner.schema import Shape


def check_named(value: Any, where: str, shapes: Mapping[str, Shape]) -> dict[str, Any]:
    """BadInput where the value is no mapping, or a key of `shapes` is missing or of another kind."""
    if not isinstance(value, dict):
        raise BadInput(f"{where}: {shown(value)}; expected a mapping")
    for key, shape in shapes.items():
        if key not in value:
            raise BadInput(f"{where}: '{key}' is missing; make the file anew")
        shape.check(value[key], where, key)
    return value
