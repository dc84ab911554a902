"""The rolling window: the newest windows, what was told already, and how counters stood.

Every piece of news is one transaction: a process that is killed loses nothing, and counts nothing twice.
Shapes: W windows, L layers, E experts.
"""

import json
import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.load import Heard, Window
from planner.watching.database import Database

Counts = npt.NDArray[np.int64]
NARROW = np.iinfo(np.int32).max


class Store:
    """At most `keep` windows, all of the same layers and experts."""

    def __init__(self, database: Database, keep: int, experts: int) -> None:
        self._database, self.keep, self.experts = database, keep, experts

    def has(self, key: str) -> bool:
        return self._database.one("SELECT 1 FROM told WHERE key = ?", key) is not None

    def counter(self, name: str) -> Counts | None:
        found = self._database.one("SELECT shape, counts FROM counters WHERE name = ?", name)
        return None if found is None else np.frombuffer(found[1], np.int64).reshape(json.loads(found[0]))

    def add(self, heard: Heard) -> int:
        """How many windows came: all of the news is kept or nothing; the oldest windows go.

        BadInput where it cannot be kept, or the windows are of other layers than those held.
        """
        database = self._database
        with database.whole():
            at = self._now()
            for window in {window.layer_ids: window for window in heard.windows}.values():
                self._bind(window)
            number, first = self.newest, max(len(heard.windows) + heard.more - self.keep, 0)
            for place, window in enumerate(heard.windows[first:], first + 1):
                insert = "INSERT INTO windows VALUES (?, ?, ?, ?, ?)"
                database.all(insert, number + place, at, window.map_sha256, *_packed(window.tokens_LE))
            for key in heard.keys:
                database.all("INSERT OR IGNORE INTO told VALUES (?)", key)
            for name, counts in heard.counters.items():
                row = (name, json.dumps(counts.shape), counts.astype(np.int64).tobytes())
                database.all("INSERT OR REPLACE INTO counters VALUES (?, ?, ?)", *row)
            if heard.present is not None:
                self._forget(heard.present)
            newest = number + len(heard.windows)
            self._note("newest", str(newest))
            database.all("DELETE FROM windows WHERE number <= ?", newest - self.keep)
        return len(heard.windows)

    def windows(self) -> tuple[Counts, tuple[int, ...], tuple[str, ...]]:
        """(tokens_WLE, their numbers, the maps served in them): the rolling window, the oldest first."""
        rows = self._database.all("SELECT number, map, wide, counts FROM windows ORDER BY number")
        shape = (len(self.layer_ids), self.experts)
        counts = [np.frombuffer(row[3], np.int64 if row[2] else np.int32).reshape(shape) for row in rows]
        tokens_WLE = np.array(counts, dtype=np.int64).reshape(len(rows), *shape)
        return tokens_WLE, tuple(row[0] for row in rows), tuple(row[1] for row in rows)

    @property
    def layer_ids(self) -> tuple[int, ...]:
        """Of the windows' rows; empty before the first window."""
        return tuple(json.loads(self.noted("layer_ids") or "[]"))

    @property
    def newest(self) -> int:
        """The number of the newest window, which counts all that ever came; 0 where none did."""
        return int(self.noted("newest") or 0)

    def note(self, name: str, value: str) -> None:
        with self._database.whole():
            self._note(name, value)

    def noted(self, name: str) -> str:
        found = self._database.one("SELECT value FROM about WHERE name = ?", name)
        return "" if found is None else str(found[0])

    def _note(self, name: str, value: str) -> None:
        self._database.all("INSERT OR REPLACE INTO about VALUES (?, ?)", name, value)

    def _bind(self, window: Window) -> None:
        found, held = json.dumps([*window.layer_ids]), self.noted("layer_ids")
        experts = self.noted("experts") or str(self.experts)
        if experts != str(self.experts) or window.tokens_LE.shape != (len(window.layer_ids), self.experts):
            raise BadInput(
                f"{self._database.path}: it holds windows of {experts} experts a layer, and the plan's model "
                f"has {self.experts}; name another file with --state"
            )
        if not held:
            self._note("layer_ids", found)
            self._note("experts", experts)
        elif held != found:
            raise BadInput(
                f"{self._database.path}: it holds windows of {len(self.layer_ids)} layers, and one of "
                f"{len(window.layer_ids)} others came; name another file with --state"
            )

    def _forget(self, present: Sequence[str]) -> None:
        """What cannot come again need not be known."""
        database = self._database
        database.all("DELETE FROM present")
        database.many("INSERT OR IGNORE INTO present VALUES (?)", ((key,) for key in present))
        database.all("DELETE FROM told WHERE key NOT IN (SELECT key FROM present)")

    def _now(self) -> float:
        """The clock, or the newest window's time where the clock was put back."""
        last = self._database.one("SELECT max(at) FROM windows")[0]
        return max(time.time(), last or 0.0)


def _packed(tokens_LE: Counts) -> tuple[int, bytes]:
    wide = bool((tokens_LE > NARROW).any())
    return int(wide), tokens_LE.astype(np.int64 if wide else np.int32).tobytes()
