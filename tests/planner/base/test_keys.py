"""A mapping has the keys it must have, or is refused in one line."""

from typing import Any

import pytest

from planner.base import BadInput, check_keys


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([1], "expected a mapping with count, rate; got list"),
        (None, "got NoneType"),
        ({"count": 1}, "the key 'rate' is missing"),
        ({"count": 1.5, "rate": 1.0}, "'count' is 1.5; expected a whole number"),
        ({"count": True, "rate": 1.0}, "'count' is True; expected a whole number"),
        ({"count": 1, "rate": False}, "'rate' is False; expected a whole number or a number"),
        ({"count": 1, "rate": "fast"}, "'rate' is 'fast'"),
        ({"count": 1, "rate": 2, "note": 5}, "'note' is 5; expected text"),
        ({"count": 1, "rate": 2, "nmae": "x"}, "unknown key 'nmae'; known are count, note, rate"),
        ({"count": 1, "rate": 2, 7: "x"}, "unknown key '7'"),
    ],
)
def test_keys_are_checked(value: Any, reason: str) -> None:
    """Missing, of another type, misspelt: the place, the key and the value are named."""
    with pytest.raises(BadInput, match=f"^here: .*{reason}"):
        check_keys(value, "here", {"count": int, "rate": (int, float)}, {"note": str})


def test_good_keys_pass() -> None:
    """The mapping itself comes back, optional keys or not."""
    for value in ({"count": 1, "rate": 2.5}, {"count": 1, "rate": 2, "note": "x"}):
        assert check_keys(value, "here", {"count": int, "rate": (int, float)}, {"note": str}) is value
