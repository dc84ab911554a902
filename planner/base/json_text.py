"""JSON as text: each key once on the way in, lines that a person can compare on the way out."""

import json
from collections import Counter
from typing import Any

from planner.base.errors import BadInput


def parse_json(text: str, name: str) -> Any:
    """JSON whose mappings hold each key once. `name` is used in messages."""
    try:
        return json.loads(text, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise BadInput(
            f"{name}: line {error.lineno}, column {error.colno}: not valid JSON ({error.msg}); "
            "the file may be cut short"
        ) from error
    except ValueError as error:  # a number of thousands of digits, or a key that appears twice
        raise BadInput(f"{name}: not valid JSON ({error})") from error
    except RecursionError as error:
        raise BadInput(f"{name}: the JSON is nested too deeply to be one of our files") from error


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
