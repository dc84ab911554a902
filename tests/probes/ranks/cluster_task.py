"""A task for ranks of a cluster: each says its host, or what the job's one word asks of it."""

import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from planner.base import BadInput
from probes.ranks.party import Party, Task

if TYPE_CHECKING:
    from probes.ranks.wire import Wire

RANKS = 3


def task_in(folder: Path) -> Task:
    return task((folder / "word").read_text())


def task(word: str, timeout_seconds: float = 60.0) -> Task:
    def work(wire: "Wire") -> str:
        wire.status.enter(word)
        if wire.rank == 2 and word == "refuse":
            raise BadInput("rank 2 does not like this")
        if wire.rank == 2 and word == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return f"{socket.gethostname()} {os.environ['LOCAL_RANK']} {wire.gather(word)}"

    return Task(Party((0, 0, 1), "cpu", timeout_seconds), work)
