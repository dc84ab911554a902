"""Values that hold nothing: numbers, texts, flags; and plain values of any kind, that we only pass on."""

import math
import re
from dataclasses import dataclass
from typing import Any

from planner.base import ACTS, BadInput, shown
from planner.schema.shape import Shape

LARGEST = 1 << 53  # up to where every reader of JSON keeps whole numbers exact
DEEPEST = 20
_LINE = rf"[^{ACTS}\n\t]*"


@dataclass(frozen=True)
class Whole(Shape):
    """A whole number in a range, both ends included. True and 3.0 are none."""

    least: int = -LARGEST
    most: int = LARGEST

    @property
    def words(self) -> str:
        return f"a whole number{_span(self.least, self.most)}"

    def fits(self, value: Any) -> bool:
        return type(value) is int and self.least <= value <= self.most

    def json_schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Number(Shape):
    """A finite number in a range; `above`: the lower end is not included."""

    least: float = -1e300
    most: float = 1e300
    above: bool = False

    @property
    def words(self) -> str:
        if self.above:
            return f"a number above {self.least:g}" + (
                f", at most {self.most:g}" if self.most < 1e300 else ""
            )
        return f"a number{_span(self.least, self.most)}"

    def fits(self, value: Any) -> bool:
        if type(value) not in (int, float) or not self.least <= value <= self.most:
            return False
        return math.isfinite(value) and not (self.above and value == self.least)

    def json_schema(self) -> dict[str, Any]:
        low = "exclusiveMinimum" if self.above else "minimum"
        return {"type": "number", low: self.least, "maximum": self.most}


@dataclass(frozen=True)
class Text(Shape):
    """One line of text: one of some words, or of a form (a regular expression for all of it, called `said`).

    No character in it acts on a terminal; `flat` makes such a text of any.
    """

    one_of: tuple[str, ...] = ()
    form: str = ""
    said: str = ""
    longest: int = 100_000

    @property
    def words(self) -> str:
        if self.one_of:
            return ", ".join(self.one_of[:-1]) + (" or " if self.one_of[:-1] else "") + self.one_of[-1]
        return self.said or "text without control characters"

    def fits(self, value: Any) -> bool:
        if not isinstance(value, str) or len(value) > self.longest:
            return False
        if self.one_of:
            return value in self.one_of
        return re.fullmatch(self.form or _LINE, value, re.ASCII) is not None

    def json_schema(self) -> dict[str, Any]:
        if self.one_of:
            return {"enum": list(self.one_of)}
        return {"type": "string", "maxLength": self.longest, "pattern": f"^(?:{self.form or _LINE})$"}


@dataclass(frozen=True)
class Flag(Shape):
    """True or false."""

    @property
    def words(self) -> str:
        return "true or false"

    def fits(self, value: Any) -> bool:
        return isinstance(value, bool)

    def json_schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Plain(Shape):
    """Anything that JSON can say, with finite numbers; what nobody reads back is no more than this."""

    @property
    def words(self) -> str:
        return "plain values"

    def fits(self, value: Any) -> bool:
        return value is None or isinstance(value, (bool, int, float, str, list, dict))

    def inside(self, value: Any, where: str) -> None:
        _plain(value, where, DEEPEST)

    def json_schema(self) -> dict[str, Any]:
        return {}


def _plain(value: Any, where: str, deepest: int) -> None:
    if type(value) is float and not math.isfinite(value):
        raise BadInput(f"{where}: {value} is not a finite number")
    if type(value) is int and abs(value) >= 1 << 63:
        raise BadInput(f"{where}: {shown(value)} is too large a number")
    if isinstance(value, (list, dict)):
        if not deepest:
            raise BadInput(f"{where}: nested too deeply to be one of our files")
        listed = enumerate(value) if isinstance(value, list) else value.items()
        for key, entry in listed:
            if not isinstance(entry, (str, bool, type(None))):
                _plain(entry, f"{where}: {key}", deepest - 1)


def _span(least: float, most: float) -> str:
    """Like ' from 1 to 8', ' from 1 on', or nothing where every number will do."""
    if least <= -LARGEST and most >= LARGEST:
        return ""
    text = f" from {_short(least)}" if least > -LARGEST else ""
    return f"{text} to {_short(most)}" if most < LARGEST else f"{text} on"


def _short(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"
