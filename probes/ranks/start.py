"""One process a rank on this machine: start them, collect what they found, and leave nothing behind.

No torch here. A run is a folder with its job, a module whose `task_in(FOLDER)` reads the job as a task
(`python -m probes.ranks.worker FOLDER MODULE` does the rest), and a number of ranks. They are started by the
run's guardian, which takes them away whatever happens to us.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from probes.ranks.keep import GuardianLostError, Kept
from probes.ranks.party import Limit, RunFailed
from probes.ranks.status import make_files
from probes.ranks.watch import watch

LIMIT_END = (
    "MOEPLAN_LIMIT_END"  # in a rank's environment: when the run's time is over, by the monotonic clock
)
MEETING_FILE = "meeting"  # in the run's folder: the port where ranks find each other
_ROOT = Path(__file__).resolve().parents[2]  # the folder that holds this very package, installed or not


class Cluster(Protocol):
    """Hosts on this machine for the ranks to run on: `probes.emulation`'s."""

    def command(self, rank: int, argv: Sequence[str]) -> list[str]:
        """`argv` as a program of that rank."""

    def environment(self, rank: int) -> dict[str, str]:
        """What torchrun or srun would tell the rank."""


def make_room(folder: Path, ranks: int) -> None:
    """The files through which ranks speak, at their full size. OSError where there is no room for them."""
    make_files(folder, ranks)
    (folder / MEETING_FILE).write_text(" " * 8)


def run_here(kept: Kept, module: str, ranks: int, limit: Limit, cluster: Cluster | None = None) -> list[str]:
    """Start the ranks on this machine, or in its emulated cluster, and return what each found, as text."""
    argv = [sys.executable, "-m", "probes.ranks.worker", str(kept.folder), module]
    try:
        for rank in range(ranks):
            command = cluster.command(rank, argv) if cluster else argv
            here = _environment(kept.folder, rank, ranks, limit)
            environment = {**here, **cluster.environment(rank)} if cluster else here
            kept.start(rank, command, environment, kept.folder / f"printed-{rank}")
        watch(kept, ranks, limit)
    except GuardianLostError as error:
        raise RunFailed("the process that guards the ranks was killed, and they with it") from error
    return [(kept.folder / f"found-{rank}").read_text() for rank in range(ranks)]


def _environment(folder: Path, rank: int, ranks: int, limit: Limit) -> Mapping[str, str]:
    """One thread a rank, loopback only, temporary files where they are removed, and our package."""
    interface = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
    return {
        **interface,
        "RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(folder),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")])),
        LIMIT_END: repr(limit.end),
    }
