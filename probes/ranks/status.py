"""Where each rank is, told through small files: so that a run that stops can name the rank and its phase.

A rank holds a lock on its file for as long as it lives; the kernel lets go of it at its death, however it
died.
"""

import contextlib
import fcntl
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

DONE, FAILED = "done", "failed"
_WIDTH = 200


class Status(Protocol):
    """What a rank tells of itself."""

    def enter(self, phase: str) -> None:
        """The rank begins `phase`."""

    def wait(self, *, waiting: bool) -> None:
        """The rank begins or ends to wait for other ranks."""


@dataclass(frozen=True)
class Place:
    """Where a rank was last seen. `step` counts the phases it has entered."""

    rank: int
    pid: int
    step: int
    waiting: bool
    phase: str
    alive: bool
    stopped: bool = False

    @property
    def text(self) -> str:
        how = "waits for the others" if self.waiting else "is busy"
        if self.stopped:
            how = "is stopped (SIGSTOP)"
        if not self.alive:
            how = "ended"
        return f"rank {self.rank} {how} in '{self.phase}'"


class FileStatus:
    """A rank's own file. One write of fixed length at a time, so that a reader never sees half of one."""

    def __init__(self, directory: Path, rank: int) -> None:
        born = directory / f"born-{rank}"
        self._file = os.open(born, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._step, self._waiting, self._phase = 0, False, "start"
        self._write()
        born.rename(_path(directory, rank))  # appears locked: no reader takes it for a dead one

    def enter(self, phase: str) -> None:
        self._step, self._waiting, self._phase = self._step + 1, False, phase
        self._write()

    def wait(self, *, waiting: bool) -> None:
        self._waiting = waiting
        self._write()

    def _write(self) -> None:
        text = f"{os.getpid()} {self._step} {int(self._waiting)} {self._phase}"
        os.pwrite(self._file, text.encode()[:_WIDTH].ljust(_WIDTH), 0)


def read_places(directory: Path, ranks: int) -> list[Place]:
    """The ranks that have started, in order."""
    places = (_read(directory, rank) for rank in range(ranks))
    return [place for place in places if place is not None]


def _read(directory: Path, rank: int) -> Place | None:
    try:
        file = os.open(_path(directory, rank), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        alive = _is_locked(file)  # before the text: a rank that ends in between has written its last word
        pid, step, waiting, phase = os.pread(file, _WIDTH, 0).decode(errors="replace").rstrip().split(" ", 3)
    finally:
        os.close(file)
    return Place(rank, int(pid), int(step), waiting == "1", phase, alive, alive and _is_stopped(int(pid)))


def _is_locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False  # closing the file lets go of the lock we got


def _is_stopped(pid: int) -> bool:
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
    return False


def _path(directory: Path, rank: int) -> Path:
    return directory / f"rank-{rank}"


def dead(places: Sequence[Place]) -> list[Place]:
    """Ranks that ended without having said that they were done or had failed."""
    return [place for place in places if not place.alive and place.phase not in (DONE, FAILED)]


def laggards(places: Sequence[Place]) -> list[Place]:
    """The ranks that the others wait for: the dead, else the stopped, else the busy of the furthest behind.

    Where every one of those waits, all of them.
    """
    running = [place for place in places if place.phase not in (DONE, FAILED)]
    stopped = dead(places) or [place for place in running if place.stopped]
    if stopped or not running:
        return stopped
    behind = [place for place in running if place.step == min(other.step for other in running)]
    return [place for place in behind if not place.waiting] or behind


def kill(places: Sequence[Place]) -> None:
    """End the ranks that live.

    Only a process that still holds its file's lock is signalled, so a reused process id is not.
    """
    for place in places:
        if place.alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(place.pid, signal.SIGKILL)
