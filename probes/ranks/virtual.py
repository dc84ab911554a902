"""All ranks of a run in this one process: what they exchange is handed over in memory. Imports torch.

A rank is a thread that does the same task as a process would. One works at a time, so that the seconds of its
own work are its own; those of an exchange are the turns of others, and mean nothing. Tested on the CPU; not
run on a GPU when this was written.

Shapes: M records of one exchange, G GPUs (ranks), B bytes of a record.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from probes.ranks.party import Limit, RunFailed, Task
from probes.ranks.wire import Tally, Wire

POLL_SECONDS = 0.2  # how soon a rank that failed ends the others
STOP_SECONDS = 5.0

Taken = TypeVar("Taken")


class Table:
    """Where virtual ranks meet: each lays something down, then each takes what is its own."""

    def __init__(self, ranks: int) -> None:
        self.turn = threading.Lock()
        self._meeting = threading.Barrier(ranks)
        self._ended = False
        self._laid: list[Any] = [None] * ranks

    def swap(self, rank: int, laid: Any, take: Callable[[list[Any]], Taken]) -> Taken:
        """What `take` makes of all that was laid down. The rank has the turn, before and after."""
        self._laid[rank] = laid
        with self._out_of_turn():
            self._meeting.wait()
        self.check()
        taken = take(self._laid)
        with self._out_of_turn():
            self._meeting.wait()  # nobody lays anew while others still take
        self.check()
        return taken

    def end(self) -> None:
        """Whoever waits, or comes to wait, or gets its turn, is sent home."""
        self._ended = True
        self._meeting.abort()

    def check(self) -> None:
        """BrokenBarrierError where the run is over."""
        if self._ended:
            raise threading.BrokenBarrierError

    @contextmanager
    def _out_of_turn(self) -> Iterator[None]:
        self.turn.release()
        try:
            yield
        finally:
            self.turn.acquire()


class Whereabouts:
    """A rank's phase, for the line that says which one took too long."""

    def __init__(self) -> None:
        self.phase, self.waiting = "start", True  # for its first turn

    def enter(self, phase: str) -> None:
        self.phase, self.waiting = phase, False

    def wait(self, *, waiting: bool) -> None:
        self.waiting = waiting


@dataclass(frozen=True, eq=False)
class VirtualWire(Wire):
    """One rank's end of a process group that is only a table in memory."""

    table: Table

    def barrier(self) -> None:
        self._swap(None, len)

    def together(self) -> None:
        self.barrier()

    def counts_from_G(self, counts_G: list[int]) -> list[int]:
        return self._swap(counts_G, lambda counts_GG: [row_G[self.rank] for row_G in counts_GG])

    @property
    def overlaps(self) -> bool:
        return False

    def swap(self, outgoing: Sequence[Tensor], incoming: Sequence[Tensor]) -> None:
        self.tally.add(outgoing, incoming)

        def take(outgoing_of_G: list[Sequence[Tensor]]) -> None:
            for part, theirs in zip(incoming, outgoing_of_G, strict=True):
                assert part.shape == theirs[self.rank].shape, "a rank sends other rows than it said"
                part.copy_(theirs[self.rank])

        self._swap(outgoing, take)

    def gather(self, text: str) -> list[str]:
        texts: list[str] = self._swap(text, list)
        return texts

    def _swap(self, laid: Any, take: Callable[[list[Any]], Taken]) -> Taken:
        self.status.wait(waiting=True)
        taken = self.table.swap(self.rank, laid, take)
        self.status.wait(waiting=False)
        return taken


def run_virtual(task: Task) -> list[str]:
    """What every rank found. RunFailed names the rank that was busy when the time was over."""
    party = task.party
    limit, device = Limit.from_now(party.timeout_seconds), torch.device(party.device)
    unit_G = torch.tensor(party.nodes, dtype=torch.int64, device=device)
    table, found, faults = Table(party.ranks), [""] * party.ranks, dict[int, Exception]()
    places = [Whereabouts() for _ in range(party.ranks)]

    def live(rank: int) -> None:
        with table.turn:
            places[rank].wait(waiting=False)
            try:
                table.check()
                wire = VirtualWire(rank, device, None, places[rank], unit_G, Tally(), limit, table)
                found[rank] = task.work(wire)
            except threading.BrokenBarrierError:
                pass  # sent home: another rank has the fault, or the time is over
            except Exception as fault:  # noqa: BLE001 - raised again by the thread that started this one
                faults[rank] = fault
                table.end()

    threads = [threading.Thread(target=live, args=(rank,), daemon=True) for rank in range(party.ranks)]
    with _one_core():
        for thread in threads:
            thread.start()
        try:
            late = _await(threads, limit.left)
            lateness = _lateness(late, places, party.timeout_seconds) if late else ""
        finally:
            table.end()
            _await(threads, STOP_SECONDS)
    for rank in sorted(faults):
        raise faults[rank]
    if lateness:
        raise RunFailed(lateness)
    return found


def _await(threads: list[threading.Thread], seconds: float) -> list[int]:
    """The ranks that have not ended after so many seconds."""
    deadline = time.monotonic() + seconds
    while any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
        next(thread for thread in threads if thread.is_alive()).join(POLL_SECONDS)
    return [rank for rank, thread in enumerate(threads) if thread.is_alive()]


def _lateness(late: list[int], places: list[Whereabouts], timeout_seconds: float) -> str:
    busy = [rank for rank in late if not places[rank].waiting] or late
    who = f"virtual rank {busy[0]} was in '{places[busy[0]].phase}'"
    remedy = "raise --timeout, or run fewer --layers, --tokens or --repeats"
    return f"{who} when the run was ended after {timeout_seconds:g} s: {remedy}"


@contextmanager
def _one_core() -> Iterator[None]:
    """One core a rank, as processes have it: every thread would bring a team of its own."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
