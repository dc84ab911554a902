"""The program that keeps a run's processes: it starts them, and takes them and their folder away.

`python guardian.py FOLDER`. It hears on its standard input, a JSON line for each program to start, and tells
on its standard output, a JSON line each, what it started and how that ended. When its input closes, whoever
closed it and however he died, it kills what it has started and all that came from that, removes the folder,
and ends. The standard library alone, no other module of ours: it starts in an instant, and has little to fail
by.

Programs are its own children: while it has not waited for one, that number is no other process's.
"""

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

POLL_SECONDS = 0.05
PARENT_SECONDS = 0.5  # a copy of our input may live on in a process that our parent has forked
BURY_SECONDS = 5.0  # a process that is stuck in the kernel dies later than SIGKILL
_PR_SET_CHILD_SUBREAPER = 36  # Linux, sys/prctl.h: what our children leave behind becomes ours


def main(folder: Path) -> int:
    """0 when nothing is left of the run, 1 where a process did not die or the folder could not be removed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _pass)  # those are for our parent, who then closes our input
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    started: dict[int, int] = {}  # process id -> number of the program
    _keep(started)
    buried = _bury(list(started))
    shutil.rmtree(folder, ignore_errors=True)
    return 0 if buried and not folder.exists() else 1


def _pass(*_: object) -> None:
    """Unlike an ignored signal, one that is handled is not ignored by the programs we start."""


def _keep(started: dict[int, int]) -> None:
    """Start what is asked for and tell what ended, until the input closes or our parent is gone."""
    parent, heard, looked = os.getppid(), b"", time.monotonic()
    while True:
        if select.select([0], [], [], POLL_SECONDS)[0]:
            chunk = os.read(0, 1 << 16)
            if not chunk:
                return
            *lines, heard = (heard + chunk).split(b"\n")
            for line in lines:
                _start(json.loads(line), started)
        for pid, code in _ended():
            if pid in started:
                _tell(number=started.pop(pid), code=code)
        if time.monotonic() - looked > PARENT_SECONDS:
            looked = time.monotonic()
            if os.getppid() != parent:
                return


def _start(program: dict[str, Any], started: dict[int, int]) -> None:
    """In a session of its own, with its output in a file."""
    try:
        with Path(program["output"]).open("wb") as output:
            process = subprocess.Popen(
                program["argv"],
                env={**os.environ, **program["environment"]},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
    except OSError as error:
        _tell(number=program["number"], code=127, why=f"{error.filename}: {error.strerror}")
        return
    started[process.pid] = program["number"]
    process.returncode = 0  # it is waited for here, with all others; Popen must not do it too
    _tell(number=program["number"], pid=process.pid)


def _tell(**word: Any) -> None:
    """Where our parent is dead nobody hears it; then the input is closed as well."""
    with contextlib.suppress(OSError):
        os.write(1, json.dumps(word).encode() + b"\n")


def _ended() -> list[tuple[int, int]]:
    """Children that ended, with their exit code, or their signal below zero."""
    found = []
    with contextlib.suppress(ChildProcessError):
        while (end := os.waitpid(-1, os.WNOHANG))[0]:
            found.append((end[0], os.waitstatus_to_exitcode(end[1])))
    return found


def _bury(started: list[int]) -> bool:
    """Kill our children, and those that become ours by that, until there are none."""
    for pid in started:  # where orphans do not become ours, the group is all we know
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    deadline = time.monotonic() + BURY_SECONDS
    while children := _children(started):
        for pid in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        buried = {pid for pid, _ in _ended()}
        started = [pid for pid in started if pid not in buried]
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS / 5)
    return True


def _children(started: list[int]) -> list[int]:
    """Every process whose parent we are, as Linux shows them; elsewhere those we started."""
    if sys.platform != "linux":
        return started
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = (folder / "stat").read_bytes().rsplit(b")", 1)[1].split()[1]
            found += [int(folder.name)] if int(parent) == os.getpid() else []
    return found


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
