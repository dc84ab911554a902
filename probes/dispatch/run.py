"""Run a plan's own dispatch for real, one process a GPU: what its ranks saw."""

import json
import socket
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.base import BadInput, read_json, write_json
from planner.topology import Seat, Topology, topology_from_dict
from probes.dispatch.job import CPU_HIDDEN, DispatchJob, load, save
from probes.dispatch.seating import ask_seats, seen_here
from probes.dispatch.seen import Seen
from probes.emulation.check import check_links
from probes.emulation.cluster import Emulation
from probes.ranks.launch import is_launched, launched_world
from probes.ranks.party import Party, RunFailed, Task
from probes.ranks.resources import check_torch, choose_device
from probes.ranks.run import run_over_ranks

if TYPE_CHECKING:  # torch is imported in the ranks
    from probes.ranks.wire import Wire

__all__ = ["Found", "RunFailed", "run", "task", "task_in", "with_device"]

JOB_FILE, CLUSTER_FILE = "job.npz", "cluster.json"


@dataclass(frozen=True, eq=False)
class Found:
    """What came of a run: the job as it was run, and every rank's account of it."""

    job: DispatchJob
    seen: list[Seen]
    hosts: tuple[str, ...]  # of each rank
    rank: int  # 0 where this process is the one that speaks
    notes: tuple[str, ...]  # why its speed says nothing of the plan's machine
    remarks: tuple[str, ...] = ()  # with what it sent and multiplied


def run(job: DispatchJob, seats: Sequence[Seat] = (), cluster: Emulation | None = None) -> Found:
    """Dispatch, compute and combine of the job's rows, by one process a GPU, or by this one for all.

    The processes are in the `cluster`, if any.

    Ends within the job's timeout, plus a few seconds to clean up. Where a launcher has started the ranks,
    every one returns the same; the one whose `rank` is 0 speaks. `seats` are those of the plan: launched
    ranks that sit elsewhere end with RunFailed before anything is timed.
    """
    check_torch("validate")
    job = with_device(job)
    if job.virtual:
        if cluster is not None:
            raise BadInput("--virtual sends nothing over links, emulated ones neither: leave one of them out")
        return _run_virtual(job)
    launched = is_launched() and cluster is None
    world = launched_world("validate") if launched else job.gpus
    if world != job.gpus:
        started = f"the plan is for {job.gpus} GPUs and {world} ranks were started"
        raise BadInput(f"{started}; start one process for each GPU of the plan")
    shaped = cluster.topology if cluster else None

    def save_all(folder: Path) -> None:
        save(job, folder / JOB_FILE)
        if shaped is not None:
            write_json(folder / CLUSTER_FILE, shaped.to_dict())

    asked = task(job, seats if launched else (), shaped)
    rank, texts = run_over_ranks(asked, "validate", save_all, __name__, cluster)
    return _found(job, rank, texts, () if launched or cluster else _notes(job))


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


def task(job: DispatchJob, seats: Sequence[Seat] = (), shaped: Topology | None = None) -> Task:
    """What each rank does: its host, what it saw and what is to be noted, as JSON.

    Seats, and the links of an emulated cluster (`shaped`), are checked before anything is timed.
    """

    def work_of(wire: "Wire") -> str:
        from probes.dispatch.rank import work

        if shaped is not None:
            check_links(wire, shaped)
        seated = ask_seats(wire, seats, seen_here(wire.device)) if seats else ()
        seen, remarks = work(job, wire)
        told = {"seen": [asdict(entry) for entry in seen], "notes": seated, "remarks": remarks}
        return json.dumps({"host": socket.gethostname(), **told})

    return Task(Party(tuple(job.unit_G.tolist()), job.device, job.timeout_seconds), work_of)


def task_in(folder: Path) -> Task:
    """The task of a rank that `probes.ranks.start` has started."""
    cluster = folder / CLUSTER_FILE
    shaped = topology_from_dict(read_json(cluster), CLUSTER_FILE) if cluster.is_file() else None
    return task(load(folder / JOB_FILE), shaped=shaped)


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
