"""JSON as text: each key once on the way in, lines that a person can compare on the way out."""

import json
import re
from collections import Counter
from typing import Any

from planner.base.errors import BadInput
from planner.base.shown import one_line, shown

LARGEST_VALUE_BYTES = 384 << 20  # that Python may take for a file's values
# What Python takes, at most, for a value that such a character is of: an entry, a list, a mapping, a text.
_BYTES_OF = {",": 40, "[": 96, "{": 240, '"': 32}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str, name: str) -> Any:
    """JSON whose mappings hold each key once. `name` is used in messages.

    BadInput also where its values would take more memory than we give to any file.
    """
    _check_size(text, name)
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise BadInput(
            f"{name}: line {error.lineno}, column {error.colno}: not valid JSON ({error.msg}); "
            "the file may be cut short"
        ) from error
    except ValueError as error:  # a number of thousands of digits, or a key that appears twice
        raise BadInput(f"{name}: not valid JSON ({one_line(error)})") from error
    except RecursionError as error:
        raise BadInput(f"{name}: the JSON is nested too deeply to be one of our files") from error
    if _SURROGATE.search(text):
        check_characters(value, name)
    return value


def check_characters(value: Any, name: str) -> None:
    """BadInput where a text holds half a character (a lone surrogate), which nobody can print or write."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo += [*one, *one.values()]
        elif isinstance(one, list):
            todo += one
        elif isinstance(one, str) and not one.isascii():
            try:
                one.encode()
            except UnicodeEncodeError as error:
                raise BadInput(f"{name}: the text {shown(one)} holds half a character") from error


def _check_size(text: str, name: str) -> None:
    """Before anything is built: two bytes of JSON may become a hundred."""
    size = len(text) + sum(text.count(letter) * size for letter, size in _BYTES_OF.items())
    if size > LARGEST_VALUE_BYTES:
        raise BadInput(
            f"{name}: its values may take {size:,} bytes of memory, more than the {LARGEST_VALUE_BYTES:,} "
            "we give to a file; record fewer windows, or save arrays as .npz"
        )


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping whose second value for a key would win in silence is refused."""
    value = dict(pairs)
    if len(value) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice[:40]!r} appears twice in one mapping")
    return value


def dump_json(value: Any) -> str:
    """JSON of which a diff can be read.

    One line per entry of the outer levels, and innermost lists of numbers on one line.
    """
    return _dump(value, indent=0) + "\n"


def _dump(value: Any, indent: int) -> str:
    pad, inner = "  " * indent, "  " * (indent + 1)
    if isinstance(value, dict) and value:
        entries = [
            f"{inner}{json.dumps(str(key))}: {_dump(entry, indent + 1)}" for key, entry in value.items()
        ]
        return "{\n" + ",\n".join(entries) + f"\n{pad}}}"
    if isinstance(value, (list, tuple)) and any(isinstance(entry, (dict, list, tuple)) for entry in value):
        return "[\n" + ",\n".join(inner + _dump(entry, indent + 1) for entry in value) + f"\n{pad}]"
    return json.dumps(value, allow_nan=False)
