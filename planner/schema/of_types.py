"""The shape of a frozen dataclass, from the types of its fields: what has a default may be left out."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from planner.schema.scalars import Flag, Number, Plain, Text, Whole
from planner.schema.shape import Shape
from planner.schema.shapes import Either, Listing, Maybe, Record, Table

PAIR = Text(form="[0-9]{1,5}-[0-9]{1,5}", said="a pair of numbers like '0-3'")
_SCALARS: dict[Any, Shape] = {str: Text(), int: Whole(), float: Number(), bool: Flag(), Any: Plain()}


def shape_of(kind: type, known: Mapping[str, Shape] | None = None, *, null: bool = True) -> Record:
    """Of a dataclass. `known` has the shapes of fields whose type does not say their range.

    `null`: whether a field that may be None is written as null, or is left out.
    """
    hints = get_type_hints(kind)
    required: dict[str, Shape] = {}
    optional: dict[str, Shape] = {}
    for one in fields(kind):
        shape = (known or {}).get(one.name) or _of_hint(hints[one.name], null=null)
        needed = one.default is MISSING and one.default_factory is MISSING
        (required if needed else optional)[one.name] = shape
    return Record(required, optional)


def _of_hint(hint: Any, *, null: bool) -> Shape:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _SCALARS:
        return _SCALARS[hint]
    if origin in (Union, types.UnionType):
        some = tuple(_of_hint(one, null=null) for one in arguments if one is not type(None))
        shape = some[0] if len(some) == 1 else Either(some)
        return Maybe(shape) if null and type(None) in arguments else shape
    if origin is tuple and arguments[-1] is ...:
        return Listing(_of_hint(arguments[0], null=null))
    if origin is tuple:
        return Listing(_of_hint(arguments[0], null=null), len(arguments), len(arguments))
    if origin in (Mapping, dict):
        key = PAIR if get_origin(arguments[0]) is tuple else Text()
        return Table(_of_hint(arguments[1], null=null), key)
    if is_dataclass(hint):
        return shape_of(hint, null=null)  # type: ignore[arg-type]  # a hint that is a dataclass is a type
    raise TypeError(f"no shape for {hint}")
