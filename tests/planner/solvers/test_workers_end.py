"""Worker processes: they end with whoever started them, and where none can be started all is done in one."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import pytest

from planner.base import BadInput
from planner.solvers.workers import work_apart
from planner.solvers.workforce import Workforce
from tests.places import ROOT

SLEEPERS = """
import sys, time
from pathlib import Path
from planner.solvers.workers import work_apart
from planner.solvers.workforce import Workforce
def work(name):
    Path(sys.argv[1], name).touch()
    time.sleep(60)
list(work_apart(work, ["0", "1"], Workforce(2)))
"""
END_SECONDS = 5.0


def descendants(parent: int) -> set[int]:
    """Every process that comes from it, but those that are ended and not buried."""
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, above = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if int(above) == parent and state != "Z":
            found |= {int(folder.name), *descendants(int(folder.name))}
    return found


def living(pids: set[int]) -> set[int]:
    def lives(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    return set(filter(lives, pids))


@pytest.fixture
def parent(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process with two workers that are at work."""
    started = subprocess.Popen(
        [sys.executable, "-c", SLEEPERS.replace("sys.argv[1]", repr(str(tmp_path)))], cwd=ROOT
    )
    try:
        yield started
    finally:
        with_them = {started.pid, *descendants(started.pid)}
        for pid in living(with_them):
            os.kill(pid, signal.SIGKILL)
        started.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc, which is Linux's")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGHUP])
def test_workers_end_with_a_parent_that_is_killed(
    how: signal.Signals, parent: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    """It cleans nothing up, so each of them looks for itself."""
    deadline = time.monotonic() + 60
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    workers = descendants(parent.pid)
    assert len(workers) >= 2
    parent.send_signal(how)
    parent.wait()
    deadline = time.monotonic() + END_SECONDS
    while living(workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not living(workers)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EMFILE, errno.EAGAIN])
def test_where_no_process_can_be_started_one_does_all(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """/dev/shm full or read-only, few descriptors, few processes: nothing is lost, and it is told."""

    def refused(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(joblib.Parallel, "__call__", refused)
    told: list[str] = []
    found = dict(work_apart(abs, [-1, -2, -3], Workforce(2), lambda _, text: told.append(text)))
    assert found == {0: 1, 1: 2, 2: 3}
    assert told == [f"in this process, for no other can be started ({os.strerror(number)})"]


def test_a_worker_that_is_killed_is_one_line() -> None:
    """By the system, for want of memory: no traceback."""
    with pytest.raises(BadInput, match="worker processes was killed"):
        list(work_apart(_end, [1, 2], Workforce(2)))


def _end(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
