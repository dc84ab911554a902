"""A rank that somebody else has started (torchrun, srun), at the same work. Imports torch.

Phases and faults are told, and results gathered, over the group. Not run on several machines or on GPUs when
this was written; torchrun on one machine, and hosts emulated by network namespaces, are tested.
"""

import contextlib
import os
import socket
from dataclasses import dataclass

import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from planner.base import BadInput
from probes.ranks.join import open_device, open_wire
from probes.ranks.last_words import LastWords, last_words
from probes.ranks.launch import launched_world, run_id
from probes.ranks.meeting import Meeting, open_store
from probes.ranks.party import Limit, PeersLostError, RankBugError, RunFailed, Task
from probes.ranks.reason import account_of, reason_of, said_of
from probes.ranks.stop import stoppable

EARLY_SECONDS = 15.0  # for a rank that fails before the run begins to reach the others


def run_launched(task: Task, limit: Limit, parent: int) -> tuple[int, list[str]]:
    """The number of this rank, and what every rank found. RunFailed names the ranks that did not answer.

    `parent` is the process that started this one.
    """
    rank, world = int(os.environ["RANK"]), task.party.ranks
    if limit.over:
        raise RunFailed(f"rank {rank}: busy in 'import of torch'; {limit.text}")
    with stoppable(), last_words(rank, limit, parent) as words:
        words.phase = f"meeting at {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        meeting = _meet(rank, world, limit)
        try:
            meeting.muster(limit)
            texts = _texts_of_all(task, limit, meeting, Told(meeting, words))
            dist.destroy_process_group()
        except RunFailed:
            meeting.leave()
            raise
        except (PeersLostError, dist.DistError) as error:
            raise _lost(error, meeting, limit, words.phase) from error
        except Exception as error:  # told to the others, and raised again with its rank and phase
            raise _failed(error, meeting, words.phase) from error
    return rank, texts


def tell_others(error: Exception) -> None:
    """Where this rank cannot begin: the others hear why instead of waiting for it."""
    limit = Limit.from_now(EARLY_SECONDS)
    with contextlib.suppress(BadInput, dist.DistError):  # that it is not told where to meet, too
        world = launched_world("the run")
        meeting = _meet(int(os.environ["RANK"]), world, limit)
        meeting.tell_fault(_reason(error))
        meeting.leave()


@dataclass
class Told:
    """A rank's phase, told to the others and, should it hang, kept for its last words."""

    meeting: Meeting
    words: LastWords

    def enter(self, phase: str) -> None:
        self.words.phase = phase
        self.meeting.enter(phase)

    def wait(self, *, waiting: bool) -> None:
        """Not told: it would cost a round trip inside the measured time."""
        del waiting


def _texts_of_all(task: Task, limit: Limit, meeting: Meeting, status: Told) -> list[str]:
    status.enter("start of the process group")
    device = open_device(task.party)
    meeting.wait_for_all(
        "ready", limit
    )  # what can fail has been done before torch waits, which hears nothing
    wire = open_wire(task.party, device, limit, status, meeting.store, meeting.rank)
    found = task.work(wire)
    status.enter("gathering of results")
    texts = wire.gather(found)
    wire.barrier()
    return texts


def _meet(rank: int, world: int, limit: Limit) -> Meeting:
    """RunFailed where the ranks do not find their first one.

    torchrun has a store already. What meets at the same port under another launch is kept apart by its id.
    """
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return Meeting(next(rendezvous("env://", timeout=limit.delta))[0], rank, world)
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    try:
        store = open_store(host, port, world, limit, here=rank == 0)
    except dist.DistError as error:
        if rank == 0 and "EADDRINUSE" in str(error):
            free = "set MASTER_PORT to a free one for every rank"
            taken = f"port {port} of {socket.gethostname()} is taken; {free}"
            raise RunFailed(taken) from error
        late = f"rank {rank} did not find rank 0 at {host}:{port}"
        raise RunFailed(f"{late} ({said_of(error)}); {limit.text}") from error
    return Meeting(PrefixStore(run_id(os.environ), store), rank, world)


def _lost(error: Exception, meeting: Meeting, limit: Limit, phase: str) -> RunFailed:
    """The ranks lost each other, or the time is over: why."""
    try:
        why = meeting.roll_call()
        if why is None and limit.over:
            why = f"every rank was at work, rank {meeting.rank} in '{phase}'; {limit.text}"
        elif why is None:
            why = (
                f"the ranks lost each other ({said_of(error)}); look at the network and the first rank's log"
            )
        _hang_up()
        meeting.leave()
    except dist.DistError:
        why = "the ranks lost each other and the store of rank 0 as well; look at rank 0's log first"
    return RunFailed(why)


def _failed(error: Exception, meeting: Meeting, phase: str) -> Exception:
    """Where this rank cannot go on: the others hear why before they lose it."""
    with contextlib.suppress(dist.DistError):
        meeting.tell_fault(_reason(error))
        _hang_up()
        meeting.leave()
    reason = reason_of(error)
    if reason is None:
        return RankBugError(f"rank {meeting.rank} failed:\n{account_of(error)}")
    return RunFailed(f"rank {meeting.rank} failed in '{phase}': {reason}")


def _hang_up() -> None:
    """The others notice at once that we are gone, where we had joined them."""
    if dist.is_initialized():
        with contextlib.suppress(RuntimeError, ValueError):
            dist.destroy_process_group()


def _reason(error: Exception) -> str:
    return reason_of(error) or f"a fault of moeplan's own, {type(error).__name__}; look at that rank's log"
