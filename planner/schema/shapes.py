"""Values that hold others: lists, mappings with known keys, mappings with free keys, one or the other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.base import BadInput, check_keys, shown
from planner.schema.scalars import Text, Whole
from planner.schema.shape import Shape

MOST_ENTRIES = 1 << 24
SHOWN_KEYS = 5


@dataclass(frozen=True)
class Listing(Shape):
    """A list of values of one kind."""

    of: Shape
    shortest: int = 0
    longest: int = MOST_ENTRIES

    @property
    def words(self) -> str:
        if self.shortest == self.longest:
            return f"a list of {self.shortest} entries, each {self.of.words}"
        most = f" at most {self.longest:,}" if self.longest < MOST_ENTRIES else ""
        least = f" at least {self.shortest}" if self.shortest else ""
        return f"a list of{least}{' and' if least and most else ''}{most} entries, each {self.of.words}"

    def fits(self, value: Any) -> bool:
        return isinstance(value, list) and self.shortest <= len(value) <= self.longest

    def inside(self, value: Any, where: str) -> None:
        of = self.of
        whole = isinstance(of, Whole) and set(map(type, value)) == {int}
        if whole and of.fits(min(value)) and of.fits(max(value)):  # long lists of numbers, at once
            return
        for index, entry in enumerate(value):
            of.check(entry, f"{where}[{index}]")

    def json_schema(self) -> dict[str, Any]:
        return {
            "type": "array",
            "items": self.of.json_schema(),
            "minItems": self.shortest,
            "maxItems": self.longest,
        }


@dataclass(frozen=True)
class Nested(Shape):
    """Lists in lists, as deep as one of `depths`, of numbers: an array.

    That rows are as long, and of numbers, its reader says: by window, layer and expert.
    """

    depths: tuple[int, ...]

    @property
    def words(self) -> str:
        return f"lists of numbers, {' or '.join(map(str, self.depths))} deep"

    def fits(self, value: Any) -> bool:
        return isinstance(value, list)

    def inside(self, value: Any, where: str) -> None:
        level, depth = value, 1
        while level and isinstance(level[0], list):
            level, depth = level[0], depth + 1
        if depth not in self.depths:
            raise BadInput(f"{where}: these are lists {depth} deep; expected {self.words}")

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [self._deep(depth) for depth in self.depths]}

    def _deep(self, depth: int) -> dict[str, Any]:
        if depth == 1:
            return {"type": "array", "items": {"type": "number"}}
        return {"type": "array", "items": self._deep(depth - 1), "minItems": 1}


@dataclass(frozen=True)
class Record(Shape):
    """A mapping with these keys and no others: a misspelt key must not pass in silence."""

    required: Mapping[str, Shape] = field(hash=False)
    optional: Mapping[str, Shape] = field(default_factory=dict, hash=False)

    @property
    def words(self) -> str:
        keys = list(self.required) or list(self.optional)
        return f"a mapping with {', '.join(keys[:SHOWN_KEYS])}{', ...' if keys[SHOWN_KEYS:] else ''}"

    def fits(self, value: Any) -> bool:
        return isinstance(value, dict)

    def inside(self, value: Any, where: str) -> None:
        known = {**self.required, **self.optional}
        check_keys(value, where, dict.fromkeys(self.required, object), dict.fromkeys(self.optional, object))
        for key, entry in value.items():
            known[key].check(entry, where, key)

    def json_schema(self) -> dict[str, Any]:
        known = {**self.required, **self.optional}
        return {
            "type": "object",
            "required": list(self.required),
            "properties": {key: shape.json_schema() for key, shape in known.items()},
            "additionalProperties": False,
        }

    def needing(self, *keys: str) -> "Record":
        """The same, with these keys no longer optional."""
        optional = {key: shape for key, shape in self.optional.items() if key not in keys}
        return Record({**self.required, **{key: self.optional[key] for key in keys}}, optional)

    def with_keys(self, **more: Shape) -> "Record":
        """The same with more required keys before its own."""
        return Record({**more, **self.required}, self.optional)


@dataclass(frozen=True)
class Table(Shape):
    """A mapping whose keys are free: texts of a form, all with a value of one kind."""

    of: Shape
    keys: Text = Text()  # noqa: RUF009 - frozen
    fewest: int = 0
    most: int = MOST_ENTRIES

    @property
    def words(self) -> str:
        return f"a mapping of {self.keys.words} to {self.of.words}"

    def fits(self, value: Any) -> bool:
        return isinstance(value, dict) and self.fewest <= len(value) <= self.most

    def inside(self, value: Any, where: str) -> None:
        for key, entry in value.items():
            if not self.keys.fits(str(key) if type(key) is int else key):  # YAML has numbers
                raise BadInput(f"{where}: the key {shown(key)}; expected {self.keys.words}")
            self.of.check(entry, f"{where}: {key}")

    def json_schema(self) -> dict[str, Any]:
        names = {key: said for key, said in self.keys.json_schema().items() if key != "type"}
        return {
            "type": "object",
            "propertyNames": names,
            "additionalProperties": self.of.json_schema(),
            "minProperties": self.fewest,
            "maxProperties": self.most,
        }


@dataclass(frozen=True)
class Maybe(Shape):
    """A value, or null where there is none."""

    of: Shape

    @property
    def words(self) -> str:
        return f"{self.of.words}, or null"

    def fits(self, value: Any) -> bool:
        return value is None or self.of.fits(value)

    def inside(self, value: Any, where: str) -> None:
        if value is not None:
            self.of.inside(value, where)

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [self.of.json_schema(), {"type": "null"}]}


@dataclass(frozen=True)
class Either(Shape):
    """The first of several that the value itself fits, by its type."""

    among: tuple[Shape, ...]

    @property
    def words(self) -> str:
        return " or ".join(shape.words for shape in self.among)

    def fits(self, value: Any) -> bool:
        return any(shape.fits(value) for shape in self.among)

    def inside(self, value: Any, where: str) -> None:
        next(shape for shape in self.among if shape.fits(value)).inside(value, where)

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [shape.json_schema() for shape in self.among]}
