"""Slurm's shorthand for many names, commas between them: 'srv[1101-1108,1201]', 'rack[1-2]node[01-04]'."""

import itertools
import math
import re

from planner.base import BadInput

LARGEST_LIST = 200_000
_RANGE = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,12}))?")


def expand_hosts(text: str, where: str, largest: int = LARGEST_LIST) -> tuple[str, ...]:
    """
    The names, in the order written.

    BadInput (beginning with `where`) where the brackets do not fit, a range runs backwards, or it names too
    many.

    >>> expand_hosts("n[08-10],login", "doc")
    ('n08', 'n09', 'n10', 'login')
    """
    names: list[str] = []
    for part in _split(text, where):
        names += _expand(part, where, largest - len(names))
    return tuple(names)


def _split(text: str, where: str) -> list[str]:
    """Parts between the commas that are outside brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if depth not in (0, 1):
            raise BadInput(
                f"{where}: the brackets of {text[:60]!r} do not fit; write them like 'node[01-04,07]'"
            )
        if letter == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    if depth:
        raise BadInput(f"{where}: the bracket of {text[:60]!r} is not closed; the line may be cut short")
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def _expand(part: str, where: str, largest: int) -> list[str]:
    pieces = re.split(r"\[([^\]]*)\]", part)  # text, inside, text, inside, ..., text
    ranges = [_bounds(inside, where) for inside in pieces[1::2]]
    count = math.prod(sum(high - low + 1 for low, high, _ in bounds) for bounds in ranges)
    if count > largest:
        raise BadInput(
            f"{where}: {part[:60]!r} brings the hosts to more than {LARGEST_LIST:,}; check the range"
        )
    choices = [
        [f"{number:0{width}d}" for low, high, width in bounds for number in range(low, high + 1)]
        for bounds in ranges
    ]
    literals = pieces[::2]
    return [
        literals[0] + "".join(map("".join, zip(chosen, literals[1:], strict=True)))
        for chosen in itertools.product(*choices)
    ]


def _bounds(inside: str, where: str) -> list[tuple[int, int, int]]:
    """(first, last, digits) of each range between the brackets."""
    bounds = []
    for text in inside.split(","):
        match = _RANGE.fullmatch(text.strip())
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if match is None or high < low:
            raise BadInput(f"{where}: the range {text[:40]!r} cannot be read; write it like '01-04'")
        bounds.append((low, high, len(match[1])))
    return bounds
