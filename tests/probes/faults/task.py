"""A small task for ranks, one of which does something wrong when it enters a given phase.

A fault is written KIND:RANK:PHASE. What a kind does is real: a signal, an allocation, a disk that is filled,
a link that is taken down.
"""

import contextlib
import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from planner.base import BadInput
from probes.ranks.party import Party, Task
from probes.ranks.status import FileStatus

if TYPE_CHECKING:
    from probes.ranks.wire import Wire

LOCAL_PHASES = ("start", "import of torch", "start of the process group", "preparation", "timing", "end")
LAUNCHED_PHASES = ("start of the process group", "preparation", "timing", "gathering of results")
ROUNDS = 20
RECORDS, BYTES = 64, 1024  # of an exchange


@dataclass(frozen=True)
class Fault:
    """What goes wrong, in which rank, when."""

    kind: str = "none"
    rank: int = 0
    phase: str = ""

    @classmethod
    def of(cls, text: str) -> "Fault":
        kind, rank, phase = text.split(":")
        return cls(kind, int(rank), phase)

    def __str__(self) -> str:
        return f"{self.kind}:{self.rank}:{self.phase}"


def task_in(folder: Path) -> Task:
    """As a rank that we started reads it."""
    text, ranks, timeout_seconds = (folder / "job").read_text().splitlines()
    fault, rank = Fault.of(text), int(os.environ["RANK"])
    FileStatus.enter = entering(FileStatus.enter, fault, rank)  # type: ignore[method-assign]
    misbehave(fault, rank, "start")
    return task(fault, int(ranks), float(timeout_seconds))


def task(fault: Fault, ranks: int, timeout_seconds: float) -> Task:
    """Two phases of exchanges; the second goes on until the time is over where the fault is 'slow'."""

    def work(wire: "Wire") -> str:
        import torch

        rows_MB = torch.zeros((RECORDS * ranks, BYTES), dtype=torch.uint8)
        counts_G = [RECORDS] * ranks
        for phase in ("preparation", "timing"):
            wire.status.enter(phase)
            rounds = 0
            while rounds < ROUNDS or (fault.kind, phase) == ("slow", "timing"):
                wire.barrier()
                wire.exchange(rows_MB, counts_G, counts_G)
                rounds += 1
        return "x" * 4096

    return Task(Party((0,) * ranks, "cpu", timeout_seconds), work)


def entering(enter: Callable[..., None], fault: Fault, rank: int) -> Callable[..., None]:
    """A status's `enter`, after which the rank does what it is to do wrong in that phase."""

    def enter_and_err(self: object, phase: str) -> None:
        enter(self, phase)
        misbehave(fault, rank, phase)

    return enter_and_err


def misbehave(fault: Fault, rank: int, phase: str) -> None:
    if (fault.rank, fault.phase) != (rank, phase):
        return
    if fault.kind in SIGNALS:
        os.kill(os.getpid(), SIGNALS[fault.kind])
    elif fault.kind == "hang":
        time.sleep(600)
    elif fault.kind == "memory":
        _exhaust_memory()
    elif fault.kind == "disk":
        _fill(Path(tempfile.gettempdir()))
    elif fault.kind == "bug":
        raise ArithmeticError("raised on purpose by a test")
    elif fault.kind == "refuse":
        raise BadInput("this host has no NVML")
    elif fault.kind == "cut":
        subprocess.run(["ip", "link", "set", "eth0", "down"], check=True, timeout=10)
    elif fault.kind == "tenth":
        _slow_the_link()


SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "term": signal.SIGTERM}


def _exhaust_memory() -> None:
    """Ask for more than this process may have; where torch is imported it is torch that is refused."""
    most_bytes = 64 << 30
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    bytearray(2 * most_bytes)


def _fill(folder: Path) -> None:
    """Not a byte is left on that disk."""
    with (folder / "filling").open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 10, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass


def _slow_the_link() -> None:
    """What this rank sends goes at 1 MB/s from now on."""
    shape = "qdisc replace dev eth0 root tbf rate 8mbit burst 64kb latency 400ms"
    subprocess.run(["tc", *shape.split()], check=True, timeout=10)
