"""The ranking law of a sweep.

Rows that fit come first: those within --tpot that an engine serves, by tokens/s a GPU; then those that are
slower; then those that no engine serves; last those that do not fit. Equal rows stand in the order of points.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from planner.planning.sweeping.row import Row


class Standing(IntEnum):
    MEETS = 0
    SLOW = 1
    UNSERVED = 2
    DOES_NOT_FIT = 3


@dataclass(frozen=True)
class Ranked:
    """A row where it stands. `tie`: within the model's error of the first row of its phase."""

    row: Row
    standing: Standing
    tie: bool


def ranked(rows: Sequence[Row], tpot_seconds: float | None) -> list[Ranked]:
    """The rows of one phase in order."""
    order = sorted(
        ((_standing(row, tpot_seconds), row) for row in rows), key=lambda pair: (pair[0], -_tokens(pair[1]))
    )
    best = order[0][1] if order and order[0][0] == Standing.MEETS else None
    return [
        Ranked(row, standing, tie=standing == Standing.MEETS and _within_error(row, best))
        for standing, row in order
    ]


def once(rows: Sequence[Row]) -> list[Row]:
    """The rows, each choice of R that came to the same number once: the first of them."""
    found: dict[object, Row] = {}
    for row in rows:
        redundant = row.why_not if row.figures is None else row.figures.redundant
        found.setdefault((replace(row.point, redundant=0), redundant), row)
    return list(found.values())


def _standing(row: Row, tpot_seconds: float | None) -> Standing:
    if row.figures is None:
        return Standing.DOES_NOT_FIT
    if not row.figures.served:
        return Standing.UNSERVED
    timed = tpot_seconds is not None and row.point.phase == "decode"
    slow = timed and tpot_seconds is not None and row.figures.step.total_seconds > tpot_seconds
    return Standing.SLOW if slow else Standing.MEETS


def _within_error(row: Row, best: Row | None) -> bool:
    """Whether the model cannot tell another row from the best: they differ by less than it may be off."""
    if row is best or best is None or row.figures is None or best.figures is None:
        return False
    errors = [figures.step.error_share for figures in (row.figures, best.figures)]
    known = [error for error in errors if error is not None]
    return bool(known) and _tokens(row) >= _tokens(best) * (1 - max(known))


def _tokens(row: Row) -> float:
    return row.figures.tokens_per_s_per_gpu if row.figures else 0.0
