"""Who is named when a run stops."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from probes.ranks.status import FileStatus, Place, dead, kill, laggards, read_places
from tests.places import ROOT

RANK = (
    "import sys, time, pathlib; from probes.ranks.status import FileStatus; "
    "FileStatus(pathlib.Path(sys.argv[1]), 1).enter('dispatch'); time.sleep(60)"
)


def place(
    rank: int,
    step: int = 1,
    *,
    waiting: bool = True,
    alive: bool = True,
    stopped: bool = False,
    phase: str = "dispatch",
) -> Place:
    return Place(rank, 0, step, waiting, phase, alive, stopped)


def test_phases_and_waiting_are_read_back(tmp_path: Path) -> None:
    """A live rank's step, phase and whether it waits; ranks without a file are left out."""
    status = FileStatus(tmp_path, 2)
    status.enter("dispatch of layer 3 (plan)")
    status.wait(waiting=True)
    (seen,) = read_places(tmp_path, 4)
    assert (seen.rank, seen.pid, seen.step, seen.waiting, seen.phase, seen.alive) == (
        2,
        os.getpid(),
        1,
        True,
        "dispatch of layer 3 (plan)",
        True,
    )
    status.enter("combine")
    assert not read_places(tmp_path, 4)[0].waiting


def test_a_killed_process_is_seen_dead_and_a_stopped_one_stopped(tmp_path: Path) -> None:
    """The kernel drops the lock of a killed process at once; `kill` reaches a stopped one."""
    process = subprocess.Popen([sys.executable, "-c", RANK, str(tmp_path)], cwd=ROOT)
    try:
        wait_for(lambda: [seen.phase for seen in read_places(tmp_path, 2)] == ["dispatch"])
        assert dead(read_places(tmp_path, 2)) == []
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: read_places(tmp_path, 2)[0].stopped)
        assert read_places(tmp_path, 2)[0].text == "rank 1 is stopped (SIGSTOP) in 'dispatch'"
        kill(read_places(tmp_path, 2))
        wait_for(
            lambda: [seen.text for seen in dead(read_places(tmp_path, 2))] == ["rank 1 ended in 'dispatch'"]
        )
        kill(read_places(tmp_path, 2))  # a dead rank's process id is never signalled again
    finally:
        process.kill()
        assert process.wait(10) == -signal.SIGKILL


def test_the_dead_come_first_then_the_stopped_then_the_busy() -> None:
    """Four pictures of the same stop."""
    assert [seen.rank for seen in laggards([place(0), place(1, alive=False), place(2, stopped=True)])] == [1]
    assert [seen.rank for seen in laggards([place(0), place(1, waiting=False), place(2, stopped=True)])] == [
        2
    ]
    assert [seen.rank for seen in laggards([place(0), place(1, waiting=False), place(2)])] == [1]
    assert [
        seen.rank for seen in laggards([place(0, step=2, waiting=False), place(1), place(2, step=2)])
    ] == [1]


def test_ranks_that_are_done_are_never_named() -> None:
    """And where all of the others wait, all are named."""
    assert [seen.rank for seen in laggards([place(0, alive=False, phase="done"), place(1), place(2)])] == [
        1,
        2,
    ]
    assert laggards([place(0, alive=False, phase="done")]) == []


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)
