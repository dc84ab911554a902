"""The program that each rank on one machine runs: `python -m probes.dispatch_worker DIRECTORY`, started by torch's launcher, watched by `probes.dispatch`.

torch is imported only after the rank has said that it lives, so that a rank that dies in the import has a name.
"""

import ctypes
import json
import math
import os
import signal
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path

from probes.dispatch_job import load
from probes.dispatch_status import DONE, FAILED, FileStatus

GRACE_SECONDS = 20.0
_PR_SET_PDEATHSIG = 1  # Linux, sys/prctl.h


def main(directory: Path) -> int:
    """0 when the results are written; 1 when this rank failed and wrote why. A rank that lost its peers stays, so that the one that died stands out."""
    status = FileStatus(directory, int(os.environ["RANK"]))
    _die_with_parent()
    job = load(directory / "job.npz")
    end_after(job.timeout_seconds)
    from probes.dispatch_transport import PeersLostError

    try:
        _run(directory, status)
    except PeersLostError as error:
        (directory / f"lost-{os.environ['RANK']}").write_text(str(error))
        status.wait(waiting=True)
        time.sleep(job.timeout_seconds)
        return 1
    except Exception:  # noqa: BLE001 - handed to the parent as it is, which raises it
        (directory / f"error-{os.environ['RANK']}").write_text(traceback.format_exc())
        status.enter(FAILED)
        return 1
    status.enter(DONE)
    return 0


def _run(directory: Path, status: FileStatus) -> None:
    import torch
    import torch.distributed as dist
    from torch.distributed.rendezvous import rendezvous

    from probes.dispatch_rank import open_wire, work
    from probes.dispatch_transport import PeersLostError

    job = load(directory / "job.npz")
    rank = int(os.environ["RANK"])
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if job.device == "cuda" else torch.device("cpu")
    status.enter("start of the process group")
    try:
        store, _, _ = next(rendezvous("env://"))
    except dist.DistError as error:
        raise PeersLostError(str(error)) from error
    wire = open_wire(job, status, device, store, rank)
    seen = work(job, wire)
    (directory / f"seen-{rank}.json").write_text(json.dumps([asdict(entry) for entry in seen]))
    status.enter("end")
    wire.barrier()  # a rank that leaves early would look to the others like one that died
    dist.destroy_process_group()


def end_after(seconds: float) -> None:
    """The last resort: the kernel ends this process some time after its time is over, even inside a blocked collective."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(math.ceil(seconds + GRACE_SECONDS))


def _die_with_parent() -> None:
    """Linux ends this process with its launcher, however that ends; elsewhere `end_after` does, later."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
