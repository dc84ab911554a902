"""Where the ranks of a run find each other: torch's key-value store. Imports torch.

Here a rank says that it came, in which phase it is and why it failed, and hears the same of the others.
"""

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from torch.distributed.distributed_c10d import Store

from probes.ranks.party import Limit, RunFailed

POLL_SECONDS = 0.1
ROLL_CALL_SECONDS = 3.0
LINGER_SECONDS = 3.0  # of a rank that fails, or that has the store, for the others to hear why


class Meeting:
    """One rank's end of it. Its methods raise torch's DistError where the store is gone."""

    def __init__(self, store: Store, rank: int, world: int) -> None:
        self.store, self.rank, self.world = store, rank, world

    def enter(self, phase: str) -> None:
        """What the others are told where this rank does not answer."""
        self.store.set(f"phase-{self.rank}", phase)

    def muster(self, limit: Limit) -> None:
        """Return when all ranks have come. RunFailed says why the run cannot begin."""
        mine = f"{socket.gethostname()}, process {os.getpid()}"
        other = self.store.compare_set(f"came-{self.rank}", "", mine).decode()
        if other != mine:
            apart = "give each of two runs its own MASTER_PORT"
            raise RunFailed(f"rank {self.rank} is there already ({other}); {apart}")
        self.wait_for_all("came", limit)

    def wait_for_all(self, word: str, limit: Limit) -> None:
        """Return when every rank has said the word. Unlike in torch's own waits a fault is heard at once."""
        self.store.compare_set(f"{word}-{self.rank}", "", word)
        if self.store.add(word, 1) == self.world:
            self.store.set(f"all-{word}", "")
        while not self.store.check([f"all-{word}"]):
            if (fault := self.fault()) is not None:
                raise RunFailed(fault)
            if limit.over:
                raise RunFailed(f"{self._no_answer(self._without(word))}; {limit.text}")
            time.sleep(POLL_SECONDS)

    def tell_fault(self, reason: str) -> None:
        """The first fault counts: others follow from it."""
        told = {"rank": self.rank, "host": socket.gethostname(), "reason": reason}
        self.store.compare_set("fault", "", json.dumps(told))

    def fault(self) -> str | None:
        """What a rank has told of its own end."""
        if not self.store.check(["fault"]):
            return None
        told = json.loads(self.store.get("fault"))
        who = f"rank {told['rank']} on {told['host']}"
        return f"{who} failed in '{self._phase(told['rank'])}': {told['reason']}"

    def silent(self) -> list[int]:
        """A rank that notices a loss says so here; those that have not after a while are the lost ones."""
        self.store.set(f"here-{self.rank}", "")
        return self._until(lambda: self._without("here"), ROLL_CALL_SECONDS)

    def roll_call(self) -> str | None:
        """Why the ranks lost each other; None where all of them answer."""
        if (fault := self.fault()) is not None:
            return fault
        lost = self.silent()
        return self.fault() or (self._no_answer(lost) if lost else None)

    def leave(self) -> None:
        """Stay for a while, until the others have heard why the run ends: one of us has the store."""
        with contextlib.suppress(dist.DistError):
            self.store.add("left", 1)
            self._until(lambda: list(range(self.world - self.store.add("left", 0))), LINGER_SECONDS)

    def _no_answer(self, lost: list[int]) -> str:
        named = ", ".join(f"rank {rank} in '{self._phase(rank)}'" for rank in lost)
        return f"no answer from {named}; look at that rank's own log"

    def _phase(self, rank: int) -> str:
        key = f"phase-{rank}"
        return self.store.get(key).decode() if self.store.check([key]) else "start"

    def _without(self, word: str) -> list[int]:
        return [rank for rank in range(self.world) if not self.store.check([f"{word}-{rank}"])]

    def _until(self, missing: Callable[[], list[int]], seconds: float) -> list[int]:
        """Those still missing when none is, or when the time is over."""
        deadline = time.monotonic() + seconds
        while (absent := missing()) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        return absent


def open_store(host: str, port: int, world: int, limit: Limit, *, here: bool) -> Any:
    """The store itself where it is `here`, on any free port for 0; else a way to it.

    It does not wait for all ranks, so that the ones that never come can be named.
    """
    place = (host, port, world, here, limit.delta)
    # torch's own lists of names lag behind
    return dist.TCPStore(*place, wait_for_workers=False)  # type: ignore[attr-defined]
