"""Run a plan's own dispatch for real, one process a GPU: what its ranks saw."""

import json
import socket
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.base import BadInput
from planner.topology import Seat
from probes.dispatch.job import CPU_HIDDEN, DispatchJob, load, save
from probes.dispatch.seating import ask_seats, seen_here
from probes.dispatch.seen import Seen
from probes.ranks.launch import is_launched, launched_world
from probes.ranks.party import Party, RunFailed, Task
from probes.ranks.resources import check_torch, choose_device
from probes.ranks.run import run_over_ranks

if TYPE_CHECKING:  # torch is imported in the ranks
    from probes.ranks.wire import Wire

__all__ = ["Found", "RunFailed", "run", "task", "task_in", "with_device"]

JOB_FILE = "job.npz"


@dataclass(frozen=True, eq=False)
class Found:
    """What came of a run: the job as it was run, and every rank's account of it."""

    job: DispatchJob
    seen: list[Seen]
    hosts: tuple[str, ...]  # of each rank
    rank: int  # 0 where this process is the one that speaks
    notes: tuple[str, ...]  # why its speed says nothing of the plan's machine
    remarks: tuple[str, ...] = ()  # with what it sent and multiplied


def run(job: DispatchJob, seats: Sequence[Seat] = ()) -> Found:
    """Dispatch, compute and combine of the job's rows, by one process a GPU, or by this one for all.

    Ends within the job's timeout, plus a few seconds to clean up. Where a launcher has started the ranks,
    every one returns the same; the one whose `rank` is 0 speaks. `seats` are those of the plan: launched
    ranks that sit elsewhere end with RunFailed before anything is timed.
    """
    check_torch("validate")
    job = with_device(job)
    if job.virtual:
        return _run_virtual(job)
    launched = is_launched()
    world = launched_world("validate") if launched else job.gpus
    if world != job.gpus:
        started = f"the plan is for {job.gpus} GPUs and {world} ranks were started"
        raise BadInput(f"{started}; start one process for each GPU of the plan")
    asked = task(job, seats if launched else ())
    rank, texts = run_over_ranks(asked, "validate", lambda folder: save(job, folder / JOB_FILE), __name__)
    return _found(job, rank, texts, () if launched else _notes(job))


def _run_virtual(job: DispatchJob) -> Found:
    if is_launched():
        raise BadInput("--virtual plays all ranks in one process; start it by hand, not by torchrun or srun")
    from probes.ranks.virtual import run_virtual

    note = (
        f"one process played all {job.gpus} ranks, one after the other: dispatch and combine were not timed"
    )
    return _found(job, 0, run_virtual(task(job)), (note,))


def _found(job: DispatchJob, rank: int, texts: Sequence[str], notes: tuple[str, ...]) -> Found:
    found = [json.loads(text) for text in texts]
    hosts = tuple(one["host"] for one in found)
    return Found(job, _seen(found), hosts, rank, (*notes, *found[0]["notes"]), tuple(found[0]["remarks"]))


def task(job: DispatchJob, seats: Sequence[Seat] = ()) -> Task:
    """What each rank does: its host, what it saw and what is to be noted, as JSON."""

    def work_of(wire: "Wire") -> str:
        from probes.dispatch.rank import work

        seated = ask_seats(wire, seats, seen_here(wire.device)) if seats else ()
        seen, remarks = work(job, wire)
        told = {"seen": [asdict(entry) for entry in seen], "notes": seated, "remarks": remarks}
        return json.dumps({"host": socket.gethostname(), **told})

    return Task(Party(tuple(job.unit_G.tolist()), job.device, job.timeout_seconds), work_of)


def task_in(folder: Path) -> Task:
    """The task of a rank that `probes.ranks.start` has started."""
    return task(load(folder / JOB_FILE))


def _seen(found: Iterable[dict[str, Any]]) -> list[Seen]:
    return [Seen(**entry) for one in found for entry in one["seen"]]


def with_device(job: DispatchJob) -> DispatchJob:
    """The job with its device and width decided."""
    ranks_here = int(np.bincount(job.unit_G).max()) if is_launched() else job.gpus
    if job.virtual:
        device = choose_device(job.device, 1, "check routing and volume only")
        return replace(job, device=device, hidden=job.hidden or CPU_HIDDEN)
    device = choose_device(job.device, ranks_here, "check routing and volume only")
    width = job.dispatch_width if device == "cuda" else CPU_HIDDEN
    return replace(job, device=device, hidden=job.hidden or width)


def _notes(job: DispatchJob) -> tuple[str, ...]:
    units = len(set(job.unit_G.tolist()))
    return (f"the plan's {units} nodes were all on this machine",) if units > 1 else ()
