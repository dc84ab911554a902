"""One process a rank on this machine: start them, collect what they found, and leave nothing behind.

No torch here. A run is a folder with its job, a module whose `task_in(FOLDER)` reads the job as a task
(`python -m probes.ranks.worker FOLDER MODULE` does the rest), and a number of ranks; torch's own launcher
starts them.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from probes.ranks.status import kill, read_places
from probes.ranks.watch import POLL_SECONDS, watch

STOP_SECONDS = 5.0
_ROOT = Path(__file__).resolve().parents[2]  # the folder that holds this very package, installed or not
# `--standalone` lets the launcher choose a free port itself, so no other program can take it in between
_OPTIONS = ["--standalone", "--local-addr=127.0.0.1", "--max-restarts=0", "--monitor-interval=0.5"]

_LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}


def run_here(directory: Path, module: str, ranks: int, timeout_seconds: float) -> list[str]:
    """Start the ranks on this machine and return what each found, as text.

    Whatever happens, none of them is left.
    """
    launcher_words = [sys.executable, "-m", "torch.distributed.run"]
    worker = ["-m", "probes.ranks.worker", str(directory), module]
    with (directory / "launcher.log").open("wb") as log:
        launcher = subprocess.Popen(
            [*launcher_words, *_OPTIONS, f"--nproc-per-node={ranks}", *worker],
            env={**rank_environment(directory), **_LOOPBACK},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        watch(launcher, directory, ranks, timeout_seconds)
    finally:
        _stop(launcher, directory, ranks)
    return [(directory / f"found-{rank}").read_text() for rank in range(ranks)]


def rank_environment(directory: Path) -> dict[str, str]:
    """One thread a rank, the launcher's own files where they are removed, and our package."""
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(directory), "PYTHONPATH": path}


def _stop(launcher: "subprocess.Popen[bytes]", directory: Path, ranks: int) -> None:
    """End the ranks first, then the launcher, so that it can still bury them.

    Each is ended by its own process id: torch gives them sessions of their own.
    """
    kill(read_places(directory, ranks))
    launcher.terminate()  # it passes this on to ranks that have not told their process id yet
    with contextlib.suppress(subprocess.TimeoutExpired):
        launcher.wait(STOP_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(launcher.pid, signal.SIGKILL)
    launcher.wait(STOP_SECONDS)
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline and any(place.alive for place in read_places(directory, ranks)):
        kill(read_places(directory, ranks))  # one that was only being born at the first call
        time.sleep(POLL_SECONDS)


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """While ranks run, SIGTERM unwinds this process like Ctrl-C does, so that it cleans up behind itself."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
