"""The SQLite file of `watch`: opened by one process at a time, changed by whole transactions.

What cannot be read or kept is one line, and the file is as it was.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from planner.base import BadInput

APPLICATION = 0x6D6F6570  # "moep", so that a file of another program is known
VERSION = 1
PATIENCE_SECONDS = 1.0  # for another process that is about to end
TABLES = (
    "about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    (
        "windows (number INTEGER PRIMARY KEY, at REAL NOT NULL, map TEXT NOT NULL, "
        "wide INTEGER NOT NULL, counts BLOB NOT NULL)"
    ),
    "told (key TEXT PRIMARY KEY) WITHOUT ROWID",
    "counters (name TEXT PRIMARY KEY, shape TEXT NOT NULL, counts BLOB NOT NULL) WITHOUT ROWID",
    (
        "swaps (number INTEGER PRIMARY KEY AUTOINCREMENT, after INTEGER NOT NULL, state TEXT NOT NULL, "
        "plan TEXT NOT NULL, map TEXT NOT NULL, promised REAL NOT NULL, kept REAL NOT NULL, "
        "shape TEXT NOT NULL, placed BLOB NOT NULL)"
    ),
)


class Database:
    """One file, locked for as long as it is open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=PATIENCE_SECONDS)
        except sqlite3.Error as error:
            raise BadInput(f"{path}: {_reason(error)}") from error
        try:
            self._open()
        except (sqlite3.Error, BadInput) as error:
            self.close()
            if isinstance(error, BadInput):
                raise
            raise BadInput(f"{path}: {_reason(error)}") from error

    def _open(self) -> None:
        execute = self._connection.execute
        execute("PRAGMA locking_mode = EXCLUSIVE")
        names = ("application_id", "user_version")
        mark = tuple(execute(f"PRAGMA {name}").fetchone()[0] for name in names)
        tables = execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if mark != (APPLICATION, VERSION) and (tables or any(mark)):
            raise BadInput(f"{self.path}: no file of this `moeplan watch`; name another with --state")
        execute("PRAGMA page_size = 16384")  # of a new file: a window is tens of kilobytes
        execute("PRAGMA journal_mode = WAL")
        execute(
            "PRAGMA synchronous = NORMAL"
        )  # a crash of the machine may lose the last piece of news, no more
        execute("CREATE TEMP TABLE present (key TEXT PRIMARY KEY) WITHOUT ROWID")
        with self.whole():
            if not tables:
                for table in TABLES:
                    execute(f"CREATE TABLE {table}")
                execute(f"PRAGMA application_id = {APPLICATION}")
                execute(f"PRAGMA user_version = {VERSION}")

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def whole(self) -> Iterator[None]:
        """One transaction: all of the block, or nothing and BadInput."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise BadInput(f"{self.path}: {_reason(error)}") from error

    def all(self, query: str, *values: object) -> list[Any]:
        """The rows of a query, or of a change."""
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise BadInput(f"{self.path}: {_reason(error)}") from error

    def one(self, query: str, *values: object) -> Any:
        """The first row; None where there is none."""
        return next(iter(self.all(query, *values)), None)

    def many(self, query: str, rows: Iterator[tuple[object, ...]]) -> None:
        self._connection.executemany(query, rows)


def _reason(error: sqlite3.Error) -> str:
    text = str(error)
    if "locked" in text:
        return "in use by another `moeplan watch`; end that one, or name another file with --state"
    if "not a database" in text or "malformed" in text:
        return f"damaged, or no file of `moeplan watch` ({text}); move it away, and a new one is begun"
    return f"cannot be kept ({text}); nothing of it was changed"
