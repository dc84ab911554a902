"""A rank that somebody else has started (torchrun, srun), at the same work. Imports torch.

Phases are told and results gathered over the group. Not run on several machines or on GPUs when this was
written; torchrun on one machine, and hosts emulated by network namespaces, are tested.
"""

import contextlib
import os
import signal
import time
from datetime import timedelta

import torch.distributed as dist
from torch.distributed.distributed_c10d import Store
from torch.distributed.rendezvous import rendezvous

from probes.ranks.party import RunFailed, Task
from probes.ranks.wire import PeersLostError, open_wire
from probes.ranks.worker import end_after

ROLL_CALL_SECONDS = 5.0


class StoreStatus:
    """A rank's phase, in the group's own key-value store.

    Waiting is not told: it would cost a round trip inside the measured time.
    """

    def __init__(self, store: Store, rank: int) -> None:
        self._store, self._rank = store, rank

    def enter(self, phase: str) -> None:
        self._store.set(f"moeplan-phase-{self._rank}", phase)

    def wait(self, *, waiting: bool) -> None:
        del waiting


def run_launched(task: Task) -> tuple[int, list[str]]:
    """The number of this rank, and what every rank found. RunFailed names the ranks that did not answer."""
    rank, timeout_seconds = int(os.environ["RANK"]), task.party.timeout_seconds
    end_after(timeout_seconds)
    try:
        store = _open_store(rank, task.party.ranks, timedelta(seconds=timeout_seconds))
        texts = _texts_of_all(task, store, rank)
        dist.destroy_process_group()
    except dist.DistError as error:
        meeting = f"rank 0 at {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        late = f"rank {rank} did not find {meeting} within {timeout_seconds:g} s"
        raise RunFailed(f"{late} ({str(error).splitlines()[0]})") from error
    finally:
        signal.alarm(0)
    return rank, texts


def _open_store(rank: int, world: int, timeout: timedelta) -> Store:
    """The group's key-value store.

    torchrun has one already; another does not wait for all ranks, so that the ones that never come can be
    named.
    """
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        store: Store = next(rendezvous("env://", timeout=timeout))[0]
        return store
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    # torch's own lists of names lag behind
    place = (host, port, world, rank == 0, timeout)
    return dist.TCPStore(*place, wait_for_workers=False)  # type: ignore[attr-defined]


def _texts_of_all(task: Task, store: Store, rank: int) -> list[str]:
    status = StoreStatus(store, rank)
    status.enter("start of the process group")
    try:
        wire = open_wire(task.party, status, store, rank)
        found = task.work(wire)
        status.enter("gathering of results")
        texts = wire.gather(found)
        wire.barrier()
    except (PeersLostError, dist.DistError) as error:
        lost = _roll_call(store, rank, task.party.ranks)
        raise RunFailed(f"{lost} ({str(error).splitlines()[0]})") from error
    return texts


def _roll_call(store: Store, rank: int, world: int) -> str:
    """Every rank that notices a loss says so; those that have not spoken after a while are the lost ones."""
    with contextlib.suppress(RuntimeError):
        lost = _silent(store, rank, world)
        told = [other for other in lost if store.check([f"moeplan-phase-{other}"])]
        phases = {other: store.get(f"moeplan-phase-{other}").decode() for other in told}
        named = [f"rank {other} in '{phases.get(other, 'start')}'" for other in lost]
        if named:
            return f"no answer from {', '.join(named)}; look at that rank's own log"
        return "the ranks lost each other; look at the network and the first rank's log"
    return "the ranks lost each other and the store of rank 0 as well; look at rank 0's log first"


def _silent(store: Store, rank: int, world: int) -> list[int]:
    lost = list(range(world))
    store.set(f"moeplan-here-{rank}", "1")
    deadline = time.monotonic() + ROLL_CALL_SECONDS
    while lost and time.monotonic() < deadline:
        lost = [other for other in lost if not store.check([f"moeplan-here-{other}"])]
        time.sleep(0.1)
    return lost
