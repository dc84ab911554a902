"""Cells of a table as numbers: ASCII digits and nothing cleverer, so that no cell counts as another one."""

import re
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.base import BadInput, shown
from planner.load.recording import Array

_NUMBER = re.compile(
    r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?(nan|inf(inity)?)", re.ASCII | re.IGNORECASE
)
_WHOLE = re.compile(r"[-+]?[0-9]+", re.ASCII)
SHORT = 18  # digits of a number that an int64 holds, whatever they are


class Numbers:
    """int64 while every cell is a whole number that fits, else float64, whose cells are judged one by one."""

    def __init__(self) -> None:
        self._taken: array[Any] = array("q")

    def take(self, cells: Sequence[str], where: str) -> None:
        text = "".join(cells)
        if text.isascii() and text.isdecimal() and all(cells) and max(map(len, cells)) <= SHORT:
            self._taken.extend(map(int, cells))
            return
        found = [_number(cell, where) for cell in cells]
        if self._taken.typecode == "q" and not all(
            type(one) is int and -(2**63) <= one < 2**63 for one in found
        ):
            self._taken = array("d", self._taken)
        self._taken.extend(found)

    def values(self, shape: tuple[int, ...]) -> Array:
        kind = np.int64 if self._taken.typecode == "q" else np.float64
        return np.frombuffer(self._taken, dtype=kind).reshape(shape)


def whole_id(cell: str, where: str, column: str) -> int:
    if not (cell.isascii() and cell.isdecimal() and len(cell) < 10):
        raise BadInput(f"{where}: {column} is {shown(cell)}; expected a whole number from 0")
    return int(cell)


def _number(cell: str, where: str) -> int | float:
    if _WHOLE.fullmatch(cell) and len(cell) <= SHORT + 2:
        return int(cell)
    if not _NUMBER.fullmatch(cell):
        raise BadInput(f"{where}: the count {shown(cell)} is no number; expected a whole number")
    return float(cell)
