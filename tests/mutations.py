"""Damage to what files hold: values of other kinds, keys gone or misspelt, bytes flipped, cut and doubled."""

import copy
from typing import Any

from hypothesis import strategies as st

# What people, editors and broken disks put in the place of a value.
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3.0, 2.5, -0.0, 1e400, -1e400, float("nan"), 2**31, 2**53 + 1, 2**63,
    10**30, "", " ", "x", "0", "1e3", "\x1b[31mred", "\x00", "a\nb", "é", "\u202e", "\ud800", "x" * 300,
    "../../etc/passwd", "; true",
    [], {}, [[]], [None], [1, 2], {"x": 1}, [[1], [2, 3]], ["a"],
]  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, value: Any, most: int = 2) -> Any:
    """The value with up to `most` places changed; the value itself stays as it is."""
    found = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, most))):
        found = _changed(draw, found)
    return found


def _changed(draw: st.DrawFn, value: Any) -> Any:
    """Down a random way, so that deep places are met as often as flat ones."""
    inside = isinstance(value, (dict, list)) and value and draw(st.integers(0, 9)) > 0
    if not inside:
        return copy.deepcopy(draw(st.sampled_from(ODD) | st.integers(-(2**64), 2**64) | st.floats()))
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = draw(st.sampled_from(keys))
    how = draw(st.integers(0, 11))
    if how == 0:
        del value[key]
    elif how == 1 and isinstance(value, dict):
        value[draw(st.sampled_from(["x", "", key + "s", key.upper()])) if isinstance(key, str) else "x"] = (
            value[key]
        )
    elif how == 1:
        value.append(value[key])
    else:
        value[key] = _changed(draw, value[key])
    return value


@st.composite
def damaged_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    """Flipped, cut, doubled, inserted or removed: what disks, editors and copies do."""
    found = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(found) - 1, 0)))
        length = draw(st.integers(1, 40))
        how = draw(st.sampled_from(["flip", "cut", "double", "insert", "remove", "swap"]))
        if how == "flip" and found:
            found[at] = draw(st.integers(0, 255))
        elif how == "cut":
            del found[at:]
        elif how == "double":
            found[at:at] = found[at : at + length]
        elif how == "insert":
            found[at:at] = draw(
                st.sampled_from([b"\x00", b"\xff", b"\x1b[2J", b"9", b"-", b",", b'"', b"\n", b"{", b"0_0"])
            )
        elif how == "remove":
            del found[at : at + length]
        else:
            other = draw(st.integers(0, max(len(found) - 1, 0)))
            found[at : at + length], found[other : other + length] = (
                found[other : other + length],
                found[at : at + length],
            )
    return bytes(found)
