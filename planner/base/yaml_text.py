"""YAML as plain data: mappings, lists, texts, and the numbers that every reader of YAML takes for the same.

YAML 1.1 and 1.2 read 010 as 8 and as 10, 1:30 as 90 and as a text, 1_0 as 10 and as a text, yes as true and
as a text. Here a number is what JSON calls one, true and false are flags, and all else is the text that it
looks like: whoever wants a number then refuses it, in place of counting wrongly.
"""

import re
from collections.abc import Iterable
from typing import Any

from planner.base.errors import BadInput
from planner.base.json_text import check_characters
from planner.base.shown import one_line, shown

DEEPEST = 100  # our files nest some ten levels
MOST_VALUES = 2_000_000  # of some eighty bytes each
MOST_DIGITS = 1000
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}


def parse_yaml(text: str, name: str) -> Any:
    """YAML without objects, tags or aliases. `name` is used in messages."""
    import yaml  # heavy: imported where it is used

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        value = _Built(name).of(yaml.parse(text, Loader=loader))
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "unreadable"
        raise BadInput(f"{name}: {_place(error)}not valid YAML ({one_line(problem)})") from error
    except RecursionError as error:  # PyYAML without C, at a deep nest
        raise BadInput(f"{name}: not readable YAML (nested too deeply to be one of our files)") from error
    if not text.isascii() or "\\u" in text:
        check_characters(value, name)
    return value


def _place(error: Any) -> str:
    mark = getattr(error, "problem_mark", None)
    return f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""


class _Built:
    """What a stream of events says, built as it comes: nothing is kept but the values."""

    def __init__(self, name: str) -> None:
        self.name, self.values, self.documents = name, 0, 0
        self.top: list[Any] = []
        self.open: list[Any] = [self.top]  # collections that are not ended; of a mapping beside its key
        self.keys: list[Any] = [None]

    def of(self, events: Iterable[Any]) -> Any:
        for event in events:
            kind = type(event).__name__
            if kind == "ScalarEvent":
                self._add(self._scalar(event), event)
            elif kind in ("MappingStartEvent", "SequenceStartEvent"):
                self._refuse_tag(event)
                self._start({} if kind == "MappingStartEvent" else [], event)
            elif kind in ("MappingEndEvent", "SequenceEndEvent"):
                self.open.pop()
                self.keys.pop()
            elif kind == "AliasEvent":
                raise self._fault(event, "YAML aliases are not accepted; write the value out")
            elif kind == "DocumentStartEvent":
                self.documents += 1
                if self.documents > 1:
                    raise self._fault(event, "a second document begins; give one file for each")
        return self.top[0] if self.top else None

    def _start(self, collection: Any, event: Any) -> None:
        if len(self.open) > DEEPEST:
            raise BadInput(f"{self.name}: not readable YAML (nested too deeply to be one of our files)")
        if isinstance(self.open[-1], dict) and self.keys[-1] is None:
            raise self._fault(event, "not valid YAML (a key is a collection)")
        self._add(collection, event)
        self.open.append(collection)
        self.keys.append(None)

    def _add(self, value: Any, event: Any) -> None:
        self.values += 1
        if self.values > MOST_VALUES:
            raise BadInput(f"{self.name}: more than {MOST_VALUES:,} values; save arrays as .npz")
        into = self.open[-1]
        if isinstance(into, list):
            into.append(value)
        elif self.keys[-1] is None:
            self.keys[-1] = (value,)
            if value in into:
                raise self._fault(
                    event, f"not valid YAML (the key {shown(value)} appears twice in one mapping)"
                )
        else:
            into[self.keys[-1][0]], self.keys[-1] = value, None

    def _scalar(self, event: Any) -> Any:
        text = event.value
        if event.tag in ("tag:yaml.org,2002:str", "!"):
            return text
        self._refuse_tag(event)
        if not event.implicit[0]:  # in quotes, or a block of text
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _WHOLE.fullmatch(text):
            if len(text) > MOST_DIGITS:
                raise self._fault(event, f"not readable YAML (a number of more than {MOST_DIGITS} digits)")
            return int(text)
        return float(text) if len(text) <= MOST_DIGITS and _FLOAT.fullmatch(text) else text

    def _refuse_tag(self, event: Any) -> None:
        if event.tag is not None and event.tag != "!":
            raise self._fault(event, f"not valid YAML (the tag {shown(event.tag)} is not accepted)")

    def _fault(self, event: Any, what: str) -> BadInput:
        return BadInput(f"{self.name}: line {event.start_mark.line + 1}: {what}")
