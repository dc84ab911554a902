"""What can go wrong beside a running `watch`: files torn or of others, a disk that fills, clocks put back,
processes killed. Each is done to a closed loop for the length of one round.
"""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from tests.engines.watch_loop import Serving

Fault = Callable[[Serving, np.random.Generator], None]


class Killed(BaseException):
    """Ends a process of ours at one step of its own, as kill -9 would: nothing of ours runs after it."""


def torn_window(serving: Serving, draw: np.random.Generator) -> None:
    """The newest window is cut anywhere, as a copy in the making is."""
    path = max(serving.windows.glob("window-moe-*.npz"))
    content = path.read_bytes()
    path.write_bytes(content[: int(draw.integers(0, len(content)))])
    serving.round()


def foreign_window(serving: Serving, draw: np.random.Generator) -> None:
    """A file of that name with counts of another model."""
    experts = int(draw.integers(1, 200))
    path = serving.windows / f"window-moe-{int(draw.integers(1, 10**18)):020d}-000000.npz"
    np.savez_compressed(path, counts=np.ones((3, experts + 64), np.int64), layer_ids=np.array([0, 7, 15]))
    serving.round()
    path.unlink()


def torn_map(serving: Serving, draw: np.random.Generator) -> None:
    """The map that vLLM reads is cut while it rearranges; then it is whole again."""
    text = serving.map_file.read_text()
    serving.map_file.write_text(text[: int(draw.integers(0, len(text)))])
    serving.checked("github")
    serving.map_file.write_text(text)
    serving.round()


def full_disk(serving: Serving, draw: np.random.Generator) -> None:
    """From the n-th file on that is written in this round."""
    with _at_file(int(draw.integers(0, 4)), OSError(28, "No space left on device"), lasting=True):
        serving.round()


def full_database(serving: Serving, draw: np.random.Generator) -> None:
    """The state file cannot grow by a page."""
    del draw
    serving.round()
    assert serving.watch is not None
    database = serving.watch._database
    pages = database.one("PRAGMA page_count")[0]
    database.all(f"PRAGMA max_page_count = {pages}")
    serving.checked("book")
    serving.round()
    database.all("PRAGMA max_page_count = 100000")


def clock_back(serving: Serving, draw: np.random.Generator) -> None:
    """By up to a day, for vLLM and for watch."""
    by = float(draw.uniform(1, 86400))
    serving.put_clock(-by)
    serving.checked("c4")
    with patch("time.time", lambda: by):
        serving.round()


def killed_at_a_step(serving: Serving, draw: np.random.Generator) -> None:
    """Before the n-th file of the round is in its place."""
    try:
        with _at_file(int(draw.integers(0, 4)), Killed(), lasting=False):
            serving.round()
    except Killed:
        serving.stop_watch()


def killed(serving: Serving, draw: np.random.Generator) -> None:
    """By kill -9, at any time of a run for cron."""
    serving.stop_watch()
    words = ["watch", str(serving.plan_file), "--folder", str(serving.windows), "--once", "--apply"]
    words += ["--map", str(serving.map_file), "--state", str(serving.folder / "watch.db")]
    words += ["-o", str(serving.folder / "next.json"), "--least-gain", "0.1%"]
    run = subprocess.Popen(
        [sys.executable, "-m", "planner", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        said = run.communicate(timeout=float(draw.uniform(1.0, 5.0)))
    except subprocess.TimeoutExpired:
        run.kill()
        said = run.communicate()
    assert run.returncode in {0, 1, -signal.SIGKILL}, said
    assert "Traceback" not in said[1], said


@contextmanager
def _at_file(number: int, fault: BaseException, *, lasting: bool) -> Iterator[None]:
    """`fault` at the n-th file that is synced, and at every later one where it lasts."""
    left = [number]

    def synced(_: int) -> None:
        left[0] -= 1
        if left[0] == -1 or (lasting and left[0] < 0):
            raise fault

    with patch("os.fsync", synced):
        yield


FAULTS: tuple[tuple[Fault, int], ...] = (
    (torn_window, 16), (foreign_window, 10), (torn_map, 14), (full_disk, 14), (full_database, 10),
    (clock_back, 12), (killed_at_a_step, 14), (killed, 10),
)  # fmt: skip
