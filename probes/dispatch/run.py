"""Run a plan's own dispatch for real, one process a GPU: what its ranks saw."""

import json
import socket
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.base import BadInput, read_json, write_json
from planner.topology import Topology, topology_from_dict
from probes.dispatch.job import CPU_HIDDEN, DispatchJob, load, save
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
    notes: tuple[str, ...]


def run(job: DispatchJob, cluster: Emulation | None = None) -> Found:
    """Dispatch, compute and combine of the job's rows, by one process a GPU; in the `cluster`, if any.

    Ends within the job's timeout, plus a few seconds to clean up. Where a launcher has started the ranks,
    every one returns the same; the one whose `rank` is 0 speaks.
    """
    check_torch("validate")
    job = with_device(job)
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

    rank, texts = run_over_ranks(task(job, shaped), "validate", save_all, __name__, cluster)
    found = [json.loads(text) for text in texts]
    hosts = tuple(one["host"] for one in found)
    notes = _host_notes(job, hosts) if launched else _notes(job) if cluster is None else ()
    return Found(job, _seen(found), hosts, rank, notes)


def task(job: DispatchJob, shaped: Topology | None = None) -> Task:
    """What each rank does: its host and what it saw, as JSON.

    The links of an emulated cluster, `shaped`, are checked before anything is timed.
    """

    def work_of(wire: "Wire") -> str:
        from probes.dispatch.rank import work

        if shaped is not None:
            check_links(wire, shaped)

        seen = [asdict(entry) for entry in work(job, wire)]
        return json.dumps({"host": socket.gethostname(), "seen": seen})

    return Task(Party(tuple(job.unit_G.tolist()), job.device, job.timeout_seconds), work_of)


def task_in(folder: Path) -> Task:
    """The task of a rank that `probes.ranks.start` has started."""
    cluster = folder / CLUSTER_FILE
    shaped = topology_from_dict(read_json(cluster), CLUSTER_FILE) if cluster.is_file() else None
    return task(load(folder / JOB_FILE), shaped)


def _seen(found: Iterable[dict[str, Any]]) -> list[Seen]:
    return [Seen(**entry) for one in found for entry in one["seen"]]


def with_device(job: DispatchJob) -> DispatchJob:
    """The job with its device and width decided."""
    ranks_here = int(np.bincount(job.unit_G).max()) if is_launched() else job.gpus
    device = choose_device(job.device, ranks_here, "check routing and volume only")
    width = job.dispatch_width if device == "cuda" else CPU_HIDDEN
    return replace(job, device=device, hidden=job.hidden or width)


def _notes(job: DispatchJob) -> tuple[str, ...]:
    units = len(set(job.unit_G.tolist()))
    return (f"the plan's {units} nodes were all on this machine",) if units > 1 else ()


def _host_notes(job: DispatchJob, hosts: tuple[str, ...]) -> tuple[str, ...]:
    """Said where hosts are not the plan's nodes.

    That is right for an NVLink domain of several hosts, and a wrong rank order elsewhere.
    """
    pairs = set(zip(job.unit_G.tolist(), hosts, strict=True))
    units, seen_hosts = len(set(job.unit_G.tolist())), len(set(hosts))
    if len(pairs) == units == seen_hosts:
        return ()
    where = f"{seen_hosts} host{'s' if seen_hosts > 1 else ''}"
    differ = f"the plan has {units} nodes or NVLink domains, the ranks ran on {where}"
    return (f"{differ}; where these should be the same, check the rank order",)
