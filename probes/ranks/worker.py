"""The program of each rank that `probes.ranks.start` starts: `python -m probes.ranks.worker FOLDER MODULE`.

It tells where it is, joins the group, does the task that `task_in` of the module reads from the folder, hands
over what it found, and ends in any case. torch is imported only after the rank has said that it lives, so
that a rank that dies in the import has a name.
"""

import ctypes
import importlib
import math
import os
import signal
import sys
import time
import traceback
from pathlib import Path

from planner.base import BadInput
from probes.ranks.party import Task
from probes.ranks.status import DONE, FAILED, FileStatus

GRACE_SECONDS = 20.0
_PR_SET_PDEATHSIG = 1  # Linux, sys/prctl.h


def serve(directory: Path, module: str) -> int:
    """0 when the result is written; 1 when this rank failed and wrote why.

    A rank that lost its peers stays, so that the one that died stands out.
    """
    rank = int(os.environ["RANK"])
    status = FileStatus(directory, rank)
    _die_with_parent()
    task: Task = importlib.import_module(module).task_in(directory)
    end_after(task.party.timeout_seconds)
    from probes.ranks.wire import PeersLostError

    try:
        _run(directory, status, task, rank)
    except PeersLostError as error:
        (directory / f"lost-{rank}").write_text(str(error))
        status.wait(waiting=True)
        time.sleep(task.party.timeout_seconds)
        return 1
    except BadInput as error:
        (directory / f"refused-{rank}").write_text(str(error))
        status.enter(FAILED)
        return 1
    except Exception:  # noqa: BLE001 - handed to the parent as it is, which raises it
        (directory / f"error-{rank}").write_text(traceback.format_exc())
        status.enter(FAILED)
        return 1
    status.enter(DONE)
    return 0


def _run(directory: Path, status: FileStatus, task: Task, rank: int) -> None:
    import torch.distributed as dist
    from torch.distributed.rendezvous import rendezvous

    from probes.ranks.wire import PeersLostError, open_wire

    status.enter("start of the process group")
    try:
        store, _, _ = next(rendezvous("env://"))
    except dist.DistError as error:
        raise PeersLostError(str(error)) from error
    wire = open_wire(task.party, status, store, rank)
    (directory / f"found-{rank}").write_text(task.work(wire))
    status.enter("end")
    wire.barrier()  # a rank that leaves early would look to the others like one that died
    dist.destroy_process_group()


def end_after(seconds: float) -> None:
    """The last resort: the kernel ends this process some time after its time is over.

    It does so even inside a blocked collective.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(math.ceil(seconds + GRACE_SECONDS))


def _die_with_parent() -> None:
    """Linux ends this process with its launcher, however that ends; elsewhere `end_after` does, later."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(serve(Path(sys.argv[1]), sys.argv[2]))
