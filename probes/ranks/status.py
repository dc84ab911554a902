"""Where each rank is, told through small files: so that a run that stops can name the rank and its phase.

The files are made, at their full size, before ranks start: where the disk is full later a rank can still tell
its phase, and why it failed.
"""

import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

BUSY, WAITING, FAILED, DONE = "busy", "waiting", "failed", "done"
_WIDTH, _REASON_WIDTH = 200, 2000


class Status(Protocol):
    """What a rank tells of itself."""

    def enter(self, phase: str) -> None:
        """The rank begins `phase`."""

    def wait(self, *, waiting: bool) -> None:
        """The rank begins or ends to wait for other ranks."""


@dataclass(frozen=True)
class Place:
    """Where a rank was last seen. `step` counts the phases it has entered.

    `code` is how its process ended, below zero the signal that did it; None while it lives.
    """

    rank: int
    step: int
    state: str
    phase: str
    reason: str = ""
    code: int | None = None
    stopped: bool = False

    @property
    def lives(self) -> bool:
        return self.code is None

    @property
    def vanished(self) -> bool:
        """Whether it ended without having said that it was done or had failed."""
        return not self.lives and self.state not in (DONE, FAILED)

    @property
    def how(self) -> str:
        if self.code is not None:
            return _ended(self.code)
        if self.stopped:
            return "stopped (SIGSTOP)"
        return "waiting for the others" if self.state == WAITING else "busy"


def _ended(code: int) -> str:
    if code >= 0:
        return f"ended (exit code {code})"
    with contextlib.suppress(ValueError):
        return f"killed ({signal.Signals(-code).name})"
    return f"killed (signal {-code})"


class FileStatus:
    """A rank's own file. One write of fixed length at a time, so that a reader never sees half of one."""

    def __init__(self, directory: Path, rank: int) -> None:
        self._file = os.open(_path(directory, rank), os.O_WRONLY | os.O_CLOEXEC)
        self._step, self._state, self._phase = 0, BUSY, "start"

    def enter(self, phase: str) -> None:
        self._step, self._state, self._phase = self._step + 1, BUSY, phase
        self._write()

    def wait(self, *, waiting: bool) -> None:
        self._state = WAITING if waiting else BUSY
        self._write()

    def done(self) -> None:
        self._state = DONE
        self._write()

    def fail(self, reason: str) -> None:
        """In the phase it is in. The reason is empty where it is our own fault."""
        os.pwrite(self._file, reason.encode()[:_REASON_WIDTH].ljust(_REASON_WIDTH), _WIDTH)
        self._state = FAILED
        self._write()

    def _write(self) -> None:
        text = f"{self._step} {self._state} {self._phase}"
        os.pwrite(self._file, text.encode()[:_WIDTH].ljust(_WIDTH), 0)


def make_files(directory: Path, ranks: int) -> None:
    """Before the ranks start."""
    for rank in range(ranks):
        first = f"0 {BUSY} start".ljust(_WIDTH + _REASON_WIDTH)
        _path(directory, rank).write_text(first)


def read_places(
    directory: Path, ranks: int, pids: Mapping[int, int], codes: Mapping[int, int]
) -> list[Place]:
    """Of every rank, in order; `pids` are those of the started, `codes` those of the ended."""
    return [_read(directory, rank, pids.get(rank), codes.get(rank)) for rank in range(ranks)]


def _read(directory: Path, rank: int, pid: int | None, code: int | None) -> Place:
    record = _path(directory, rank).read_bytes()
    step, state, phase = record[:_WIDTH].decode(errors="replace").rstrip().split(" ", 2)
    reason = record[_WIDTH:].decode(errors="replace").rstrip()
    stopped = code is None and pid is not None and _is_stopped(pid)
    return Place(rank, int(step), state, phase, reason, code, stopped)


def _is_stopped(pid: int) -> bool:
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
    return False


def _path(directory: Path, rank: int) -> Path:
    return directory / f"rank-{rank}"


def laggards(places: Sequence[Place]) -> list[Place]:
    """The ranks that the others wait for: the dead, else the stopped, else the busy of the furthest behind.

    Where every one of those waits, all of them.
    """
    running = [place for place in places if place.state not in (DONE, FAILED)]
    stopped = [place for place in running if not place.lives] or [place for place in running if place.stopped]
    if stopped or not running:
        return stopped
    behind = [place for place in running if place.step == min(other.step for other in running)]
    return [place for place in behind if place.state != WAITING] or behind


def told(places: Sequence[Place]) -> str:
    """Where these ranks are, those that are in the same place together.

    >>> told([Place(0, 3, WAITING, "end"), Place(2, 3, WAITING, "end"), Place(1, 1, BUSY, "start", code=-9)])
    "ranks 0, 2: waiting for the others in 'end'; rank 1: killed (SIGKILL) in 'start'"
    """
    ranks: dict[str, list[str]] = {}
    for place in places:
        ranks.setdefault(f"{place.how} in '{place.phase}'", []).append(str(place.rank))
    return "; ".join(
        f"rank{'s' if len(alike) > 1 else ''} {', '.join(alike)}: {how}" for how, alike in ranks.items()
    )
