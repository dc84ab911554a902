"""One process a rank in a cluster that this program has made: start them, collect what they found, end them.

No torch here. It is what `probes.ranks.start` does on this machine itself, without torch's launcher.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from probes.ranks.start import STOP_SECONDS, rank_environment
from probes.ranks.watch import watch


class Cluster(Protocol):
    """Where ranks can be started, such as an emulated cluster."""

    def command(self, rank: int, argv: Sequence[str]) -> list[str]:
        """`argv` as a program of that rank."""

    def environment(self, rank: int) -> dict[str, str]:
        """What torchrun or srun would tell the rank."""


def run_in(cluster: Cluster, directory: Path, module: str, ranks: int, timeout_seconds: float) -> list[str]:
    """Start the ranks in the cluster and return what each found, as text. None of them is left."""
    with contextlib.ExitStack() as stack:
        started = _Started()
        stack.callback(started.end)
        for rank in range(ranks):
            started.add(cluster, directory, module, rank)
        watch(started, directory, ranks, timeout_seconds)
    return [(directory / f"found-{rank}").read_text() for rank in range(ranks)]


class _Started:
    """The ranks' processes, watched like one launcher: it has ended when all have, or one has badly."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self.returncode: int | None = None

    def add(self, cluster: Cluster, directory: Path, module: str, rank: int) -> None:
        worker = [sys.executable, "-m", "probes.ranks.worker", str(directory), module]
        with (directory / "launcher.log").open("ab") as log:
            process = subprocess.Popen(
                cluster.command(rank, worker),
                env={**rank_environment(directory), **cluster.environment(rank)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append(process)

    def poll(self) -> int | None:
        codes = [process.poll() for process in self._processes]
        bad = [code for code in codes if code]
        self.returncode = bad[0] if bad else None if None in codes else 0
        return self.returncode

    def end(self) -> None:
        """All that still run, by process group: once one is waited for, its number may be another's."""
        for process in self._processes:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        for process in self._processes:
            process.wait(STOP_SECONDS)
