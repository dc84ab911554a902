"""The swaps that were asked of the engine, what each promised, and what it has kept of that.

Shapes: L layers, P slots.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.watching.database import Database

KEPT = 16
# States of a swap: written down, handed to the engine, seen served, refused by it, never handed over.
ASKED, GIVEN, TAKEN, REFUSED, LEFT = "asked", "given", "taken", "refused", "left"

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Swap:
    """From `before_LP`, after the window `after`, to the plan and the map of these digests.

    Seconds a step: `promised` to be saved, and `kept` on the windows since.
    """

    after: int
    plan_sha256: str
    map_sha256: str
    promised: float
    before_LP: Ids
    state: str = ASKED
    kept: float = 0.0
    number: int = 0


class Ledger:
    """The newest swaps of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, swap: Swap) -> int:
        """The number of a swap: written down before anybody is asked for it."""
        columns = "after, state, plan, map, promised, kept, shape, placed"
        before_LP = swap.before_LP.astype(np.int32)
        row = (swap.after, swap.state, swap.plan_sha256, swap.map_sha256, swap.promised, swap.kept)
        with self._database.whole():
            marks = ", ".join("?" * 8)
            insert = f"INSERT INTO swaps ({columns}) VALUES ({marks})"  # noqa: S608 - our own words
            self._database.all(insert, *row, json.dumps(before_LP.shape), before_LP.tobytes())
            number = int(self._database.one("SELECT max(number) FROM swaps")[0])
            self._database.all("DELETE FROM swaps WHERE number <= ?", number - KEPT)
        return number

    def settle(self, number: int, *, state: str | None = None, kept: float | None = None) -> None:
        """What became of a swap."""
        for column, value in (("state", state), ("kept", kept)):
            if value is not None:
                with self._database.whole():
                    change = f"UPDATE swaps SET {column} = ? WHERE number = ?"  # noqa: S608 - our own words
                    self._database.all(change, value, number)

    def swaps(self) -> Sequence[Swap]:
        """The oldest first."""
        columns = "after, plan, map, promised, shape, placed, state, kept, number"
        ask = f"SELECT {columns} FROM swaps ORDER BY number"  # noqa: S608 - our own words
        rows = self._database.all(ask)
        return [_swap(*row) for row in rows]


def _swap(after: int, plan: str, served: str, promised: float, shape: str, placed: bytes, *rest: Any) -> Swap:
    before_LP = np.frombuffer(placed, np.int32).reshape(json.loads(shape))
    return Swap(after, plan, served, promised, before_LP, *rest)
