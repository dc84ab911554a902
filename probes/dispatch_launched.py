"""A rank that somebody else has started (torchrun, srun): the same work, with phases told and results gathered over the group. Imports torch.

Not run on several machines or on GPUs when this was written; torchrun on one machine is tested.
"""

import contextlib
import json
import os
import signal
import socket
import time
from dataclasses import asdict
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import Store
from torch.distributed.rendezvous import rendezvous

from planner.errors import BadInput
from probes.dispatch import RunFailed
from probes.dispatch_job import DispatchJob
from probes.dispatch_rank import open_wire, work
from probes.dispatch_report import DispatchReport, Seen, judge
from probes.dispatch_transport import PeersLostError, Wire
from probes.dispatch_worker import end_after

ROLL_CALL_SECONDS = 5.0


class StoreStatus:
    """A rank's phase, in the group's own key-value store. Waiting is not told: it would cost a round trip inside the measured time."""

    def __init__(self, store: Store, rank: int) -> None:
        self._store, self._rank = store, rank

    def enter(self, phase: str) -> None:
        self._store.set(f"moeplan-phase-{self._rank}", phase)

    def wait(self, *, waiting: bool) -> None:
        del waiting


def run_launched(job: DispatchJob) -> DispatchReport:
    """Every rank returns the same report; the one whose `rank` is 0 speaks. RunFailed names the ranks that did not answer."""
    rank, world = _place(job)
    device = _device() if job.device == "cuda" else torch.device("cpu")
    end_after(job.timeout_seconds)
    try:
        store, _, _ = next(rendezvous("env://", timeout=timedelta(seconds=job.timeout_seconds)))
        status = StoreStatus(store, rank)
        status.enter("start of the process group")
        try:
            wire = open_wire(job, status, device, store, rank)
            seen = work(job, wire)
            status.enter("gathering of results")
            answers = gather(wire, json.dumps({"host": socket.gethostname(), "seen": [asdict(entry) for entry in seen]}))
            wire.barrier()
        except (PeersLostError, dist.DistError) as error:
            raise RunFailed(f"{_roll_call(store, rank, world)} ({str(error).splitlines()[0]})") from error
        dist.destroy_process_group()
    except dist.DistError as error:
        raise RunFailed(f"rank {rank} did not find the others within {job.timeout_seconds:g} s ({str(error).splitlines()[0]})") from error
    finally:
        signal.alarm(0)
    parsed = [json.loads(answer) for answer in answers]
    return judge(
        job, [Seen(**entry) for answer in parsed for entry in answer["seen"]], job.device, rank, _host_notes(job, [answer["host"] for answer in parsed])
    )


def gather(wire: Wire, text: str) -> list[str]:
    """Every rank's text, at every rank. As bytes of equal length: torch's own object collectives would unpickle."""
    content = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(wire.gpus)]
    dist.all_gather(sizes, torch.tensor([len(content)]), group=wire.control)
    padded = torch.zeros(max(int(size) for size in sizes), dtype=torch.uint8)
    padded[: len(content)] = content
    all_padded = [torch.empty_like(padded) for _ in range(wire.gpus)]
    dist.all_gather(all_padded, padded, group=wire.control)
    return [bytes(part[: int(size)].numpy()).decode() for part, size in zip(all_padded, sizes, strict=True)]


def _place(job: DispatchJob) -> tuple[int, int]:
    """Rank and world size from the environment. BadInput where they do not fit the plan."""
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise BadInput(f"RANK is set but {missing[0]} is not; start validate with torchrun, or set it for every rank (unset RANK to run on this machine alone)")
    try:
        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except ValueError as error:
        raise BadInput(f"RANK is {os.environ['RANK']!r}, WORLD_SIZE is {os.environ['WORLD_SIZE']!r}; both must be whole numbers") from error
    if world != job.gpus:
        raise BadInput(f"the plan is for {job.gpus} GPUs and {world} ranks were started; start one process for each GPU of the plan")
    return rank, world


def _device() -> torch.device:
    """The GPU of this rank; the only one there is, where each process sees its own alone."""
    local = os.environ.get("LOCAL_RANK") or os.environ.get("SLURM_LOCALID") or "0"
    return torch.device("cuda", int(local) % torch.cuda.device_count())


def _roll_call(store: Store, rank: int, world: int) -> str:
    """Every rank that notices a loss says so; those that have not spoken after a while are the lost ones."""
    lost = list(range(world))
    with contextlib.suppress(RuntimeError):
        store.set(f"moeplan-here-{rank}", "1")
        deadline = time.monotonic() + ROLL_CALL_SECONDS
        while lost and time.monotonic() < deadline:
            lost = [other for other in lost if not store.check([f"moeplan-here-{other}"])]
            time.sleep(0.1)
        phases = {other: store.get(f"moeplan-phase-{other}").decode() for other in lost if store.check([f"moeplan-phase-{other}"])}
        named = [f"rank {other} in '{phases.get(other, 'start')}'" for other in lost]
        return (
            f"no answer from {', '.join(named)}; look at that rank's own log"
            if named
            else "the ranks lost each other; look at the network and the first rank's log"
        )
    return "the ranks lost each other and the store of rank 0 as well; look at rank 0's log first"


def _host_notes(job: DispatchJob, hosts: list[str]) -> list[str]:
    """Said where hosts are not the plan's nodes: right for an NVLink domain of several hosts, a wrong rank order elsewhere."""
    pairs = set(zip(job.node_G.tolist(), hosts, strict=True))
    nodes, seen_hosts = len(set(job.node_G.tolist())), len(set(hosts))
    if len(pairs) == nodes == seen_hosts:
        return []
    where = f"{seen_hosts} host{'s' if seen_hosts > 1 else ''}"
    return [f"the plan has {nodes} nodes or NVLink domains, the ranks ran on {where}; where these should be the same, check the rank order"]
