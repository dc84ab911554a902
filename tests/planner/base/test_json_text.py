"""JSON comes back as it was, is laid out for a diff, and is refused in one line where it is damaged."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import dump_json, read_json, write_json
from tests.planner.base.given import refused, saved


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": [1, 2', "line 1, column 12: not valid JSON .*; the file may be cut short"),
        ('{"a": 1}\n{"b": 2}', "line 2, column 1: not valid JSON"),
        ("hello", "line 1, column 1"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("1" * 5000, "not valid JSON .*digits"),
    ],
)
def test_damaged_json_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    """Cut short, two values, no JSON, a nest, an absurd number."""
    assert re.search(reason, refused(read_json, saved(tmp_path, text)))


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=15,
)


@given(JSON_VALUES)
def test_json_comes_back(value: Any) -> None:
    """What is dumped is valid JSON of the same value, ends in one newline, and is the same every time."""
    text = dump_json(value)
    assert json.loads(text) == value
    assert text == dump_json(json.loads(text))
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_json_is_laid_out_for_a_diff(tmp_path: Path) -> None:
    """One line for each layer's row."""
    plan = {"schema": "x", "rows": {"3": [0, 1], "4": [1, 0]}, "empty": {}, "nest": [[1], [2]]}
    path = write_json(tmp_path / "plan.json", plan)
    assert path.read_text() == (
        '{\n  "schema": "x",\n  "rows": {\n    "3": [0, 1],\n    "4": [1, 0]\n  },\n'
        '  "empty": {},\n  "nest": [\n    [1],\n    [2]\n  ]\n}\n'
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [1.0, float("-inf")]}])
def test_json_never_holds_what_is_no_json(value: Any, tmp_path: Path) -> None:
    """NaN in an output is a bug of ours: it raises, and nothing is written."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "file", value)
    assert list(tmp_path.iterdir()) == []
