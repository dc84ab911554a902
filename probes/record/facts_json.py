"""Facts to plain JSON values and back, by the types of their fields.

What is None or empty is left out; reading is strict.
"""

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from planner.base import BadInput, check_keys

T = TypeVar("T")
Types = dict[str, type | tuple[type, ...]]
LARGEST_NUMBER = 1 << 63


def to_plain(value: Any) -> Any:
    """Dataclasses become mappings, tuples lists, and the pair (0, 3) as a key '0-3'."""
    if is_dataclass(value):
        return {
            one.name: to_plain(found)
            for one in fields(value)
            if (found := getattr(value, one.name)) is not None and found not in ((), {})
        }
    if isinstance(value, Mapping):
        return {"-".join(map(str, key)): to_plain(entry) for key, entry in sorted(value.items())}
    return [to_plain(entry) for entry in value] if isinstance(value, tuple) else value


def from_plain(kind: type[T], value: Any, where: str) -> T:
    """The frozen dataclass `kind` of plain data.

    BadInput names the place in `where`: a missing, unknown or wrongly typed entry.
    """
    hints = get_type_hints(kind)
    all_fields = fields(kind)  # type: ignore[arg-type]  # callers hand over dataclasses
    needed = [one for one in all_fields if one.default is MISSING and one.default_factory is MISSING]
    required: Types = dict.fromkeys((one.name for one in needed), object)
    optional: Types = {name: object for name in hints if name not in required}
    check_keys(value, where, required, optional)
    return kind(**{name: _entry(hints[name], entry, f"{where}: {name}") for name, entry in value.items()})


def _entry(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):  # T | None; None itself is written by leaving the key out
        return _entry(next(one for one in arguments if one is not type(None)), value, where)
    if is_dataclass(hint):
        # a hint that is a dataclass is a type
        return from_plain(hint, value, where)  # type: ignore[arg-type]
    if origin is tuple:
        return _tuple(arguments, value, where)
    if origin is Mapping:
        _expect(value, dict, where)
        of = arguments[1]
        return {_pair(key, where): _entry(of, entry, f"{where}: {key}") for key, entry in value.items()}
    _expect(value, (int, float) if hint is float else hint, where)
    # also NaN, which JSON in Python lets through
    if isinstance(value, (int, float)) and not abs(value) < LARGEST_NUMBER:
        raise BadInput(f"{where}: is {str(value)[:40]}; expected a finite number")
    return float(value) if hint is float else value


def _tuple(arguments: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    _expect(value, list, where)
    kinds = [arguments[0]] * len(value) if arguments[-1] is ... else list(arguments)
    if len(kinds) != len(value):
        raise BadInput(f"{where}: has {len(value)} entries; expected {len(kinds)}")
    return tuple(
        _entry(kind, entry, f"{where}[{index}]")
        for index, (kind, entry) in enumerate(zip(kinds, value, strict=True))
    )


def _pair(key: str, where: str) -> tuple[int, int]:
    first, dash, second = key.partition("-")
    if not dash or not all(part.isascii() and part.isdigit() and len(part) < 6 for part in (first, second)):
        raise BadInput(f"{where}: the key {key[:40]!r} is not a pair of numbers like '0-3'")
    return int(first), int(second)


def _expect(value: Any, kind: Any, where: str) -> None:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        words = {list: "a list", dict: "a mapping", str: "text", int: "a whole number", bool: "true or false"}
        raise BadInput(f"{where}: is {str(value)[:60]!r}; expected {words.get(kind, 'a number')}")
