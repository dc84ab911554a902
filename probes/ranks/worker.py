"""The program of each rank that `probes.ranks.start` starts: `python -m probes.ranks.worker FOLDER MODULE`.

It tells where it is, joins the group, does the task that `task_in` of the module reads from the folder, hands
over what it found, and ends in any case. torch is imported only after the rank has said that it lives, so
that a rank that dies in the import has a name.
"""

import contextlib
import importlib
import json
import math
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from probes.ranks.keep import die_with_guardian
from probes.ranks.party import Limit, PeersLostError, Task
from probes.ranks.reason import account_of, reason_of, said_of
from probes.ranks.start import LIMIT_END, MEETING_FILE
from probes.ranks.status import FileStatus

if TYPE_CHECKING:  # torch comes with it
    from probes.ranks.meeting import Meeting

GRACE_SECONDS = 20.0
POLL_SECONDS = 0.02


def serve(directory: Path, module: str) -> int:
    """0 when the result is written; 1 when this rank failed and said why."""
    rank = int(os.environ["RANK"])
    status = FileStatus(directory, rank)
    die_with_guardian()
    try:
        task: Task = importlib.import_module(module).task_in(directory)
        limit = Limit(task.party.timeout_seconds, float(os.environ[LIMIT_END]))
        _end_after(limit.left)
        status.enter("import of torch")
        importlib.import_module("torch.distributed")
        _take_part(directory, rank, status, task, limit)
    except Exception as error:  # noqa: BLE001 - handed to the parent as it is, which raises it
        reason = reason_of(error)
        if reason is None:
            with contextlib.suppress(OSError):
                (directory / f"error-{rank}").write_text(account_of(error))
        status.fail(reason or "")
        return 1
    status.done()
    return 0


def _take_part(directory: Path, rank: int, status: FileStatus, task: Task, limit: Limit) -> None:
    """Join, work, hand over. A rank that lost the others stays, so that the one that died stands out."""
    import torch.distributed as dist

    from probes.ranks.join import open_device, open_wire

    meeting = None
    status.enter("start of the process group")
    try:
        meeting = _meet(directory, rank, task.party.ranks, limit)
        wire = open_wire(task.party, open_device(task.party), limit, status, meeting.store, rank)
        (directory / f"found-{rank}").write_text(task.work(wire))
        status.enter("end")
        wire.barrier()  # a rank that leaves early would look to the others like one that died
        dist.destroy_process_group()
    except (PeersLostError, dist.DistError) as error:
        status.wait(waiting=True)
        _tell_loss(directory, rank, said_of(error), meeting)
        time.sleep(GRACE_SECONDS + max(limit.left, 0.0))


def _meet(directory: Path, rank: int, ranks: int, limit: Limit) -> "Meeting":
    """The first rank has the store, on a port that was free, and writes the port down for the others."""
    from probes.ranks.meeting import Meeting, open_store

    host, file = os.environ["MASTER_ADDR"], directory / MEETING_FILE
    if rank == 0:
        store = open_store(host, 0, ranks, limit, here=True)
        with file.open("r+") as out:
            out.write(f"{store.port}\n")
    else:
        while "\n" not in (text := file.read_text()):
            time.sleep(POLL_SECONDS)
        store = open_store(host, int(text), ranks, limit, here=False)
    return Meeting(store, rank, ranks)


def _tell_loss(directory: Path, rank: int, why: str, meeting: "Meeting | None") -> None:
    """First that there is one, then who does not answer: where the network is cut that may not come."""
    told = {"why": why, "silent": []}
    with contextlib.suppress(OSError, RuntimeError):
        file = directory / f"lost-{rank}"
        file.write_text(json.dumps(told))
        if meeting is not None:
            silent = meeting.silent()
            file.write_text(json.dumps({**told, "silent": silent}))


def _end_after(seconds: float) -> None:
    """The last resort: the kernel ends this process some time after its time is over.

    It does so even inside a blocked collective.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(math.ceil(max(seconds, 0.0) + GRACE_SECONDS))


if __name__ == "__main__":
    sys.exit(serve(Path(sys.argv[1]), sys.argv[2]))
