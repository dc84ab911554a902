"""Run a plan's own dispatch for real, one process a GPU, and judge what came of it.

On one machine the ranks are started here. On several, the user starts this same program on all of them with torchrun or srun (`probes.ranks.start`).
"""

import json
import os
import socket
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.base import BadInput
from probes.dispatch.job import CPU_HIDDEN, DispatchJob, save
from probes.dispatch.report import DispatchReport, Seen, judge
from probes.ranks.start import (
    Party,
    RunFailed,
    available_bytes,
    check_memory,
    check_torch,
    is_launched,
    launched_place,
    run_here,
    terminable,
)

if TYPE_CHECKING:  # torch is imported in the ranks
    from probes.ranks.wire import Wire

__all__ = ["RunFailed", "party", "run", "with_device", "work_text"]


def run(job: DispatchJob) -> DispatchReport:
    """Dispatch, compute and combine of the job's layers, by one process a GPU. Ends within the job's timeout, plus a few seconds to clean up."""
    check_torch("validate")
    job = with_device(job)
    if is_launched():
        return _run_launched(job)
    if job.device == "cpu":
        check_memory(job.gpus, available_bytes())
    with tempfile.TemporaryDirectory(prefix="moeplan-validate-") as name, terminable():
        directory = Path(name)
        save(job, directory / "job.npz")
        found = run_here("probes.dispatch.worker", directory, job.gpus, job.timeout_seconds)
    return judge(job, _seen(map(json.loads, found)), job.device, rank=0, notes=_notes(job))


def _run_launched(job: DispatchJob) -> DispatchReport:
    """Every rank returns the same report; the one whose `rank` is 0 speaks. RunFailed names the ranks that did not answer."""
    _, world = launched_place("validate")
    if world != job.gpus:
        raise BadInput(
            f"the plan is for {job.gpus} GPUs and {world} ranks were started; start one process for each GPU of the plan"
        )
    from probes.ranks.launched import run_launched

    rank, texts = run_launched(party(job), work_text(job))
    found = [json.loads(text) for text in texts]
    return judge(job, _seen(found), job.device, rank, _host_notes(job, [one["host"] for one in found]))


def party(job: DispatchJob) -> Party:
    return Party(tuple(job.node_G.tolist()), job.device, job.timeout_seconds)


def work_text(job: DispatchJob) -> "Callable[[Wire], str]":
    """What a rank does, with its host and what it saw as JSON."""

    def work_of(wire: "Wire") -> str:
        from probes.dispatch.rank import work

        return json.dumps(
            {"host": socket.gethostname(), "seen": [asdict(entry) for entry in work(job, wire)]}
        )

    return work_of


def _seen(found: Iterable[dict[str, Any]]) -> list[Seen]:
    return [Seen(**entry) for one in found for entry in one["seen"]]


def with_device(job: DispatchJob) -> DispatchJob:
    """The job with its device and width decided: GPUs where there is one for each rank of this machine, else the CPU.

    Where each process was started elsewhere and sees its own GPU alone (srun --gpus-per-task), only device "cuda" says that GPUs are meant.
    """
    import torch

    visible = torch.cuda.device_count() if torch.cuda.is_available() else 0
    ranks_here = (
        int(os.environ.get("LOCAL_WORLD_SIZE", np.bincount(job.node_G).max())) if is_launched() else job.gpus
    )
    needed = 1 if is_launched() and job.device == "cuda" else ranks_here
    if job.device == "cuda" and visible < needed:
        raise BadInput(
            f"{ranks_here} ranks on this machine need as many GPUs, torch sees {visible}; use --device cpu to check routing and volume only"
        )
    device = "cpu" if job.device == "cpu" or visible < needed else "cuda"
    return replace(
        job, device=device, hidden=job.hidden or (job.dispatch_width if device == "cuda" else CPU_HIDDEN)
    )


def _notes(job: DispatchJob) -> list[str]:
    nodes = len(set(job.node_G.tolist()))
    return [f"the plan's {nodes} nodes were all on this machine"] if nodes > 1 else []


def _host_notes(job: DispatchJob, hosts: list[str]) -> list[str]:
    """Said where hosts are not the plan's nodes: right for an NVLink domain of several hosts, a wrong rank order elsewhere."""
    pairs = set(zip(job.node_G.tolist(), hosts, strict=True))
    nodes, seen_hosts = len(set(job.node_G.tolist())), len(set(hosts))
    if len(pairs) == nodes == seen_hosts:
        return []
    where = f"{seen_hosts} host{'s' if seen_hosts > 1 else ''}"
    return [
        f"the plan has {nodes} nodes or NVLink domains, the ranks ran on {where}; where these should be the same, check the rank order"
    ]
