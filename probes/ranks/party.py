"""What a run over ranks is: who takes part, what each does, how long, and the faults that end it.

No torch here.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from planner.base import BadInput

if TYPE_CHECKING:  # torch comes with it
    from probes.ranks.wire import Wire


class RunFailed(BadInput):
    """A run that could not finish; the message names the ranks that stopped it and their phase."""


class PeersLostError(Exception):
    """A collective did not complete: some other rank is gone or late, or the time is over."""


class RankBugError(RuntimeError):
    """A fault of our own in one rank, with its traceback."""


@dataclass(frozen=True)
class Limit:
    """The time that a whole run has: start of ranks, preparation, timing, gathering.

    `end` is a time of the monotonic clock, which all processes of a machine share.
    """

    seconds: float
    end: float

    @classmethod
    def from_now(cls, seconds: float) -> "Limit":
        return cls(seconds, time.monotonic() + seconds)

    @property
    def left(self) -> float:
        return self.end - time.monotonic()

    @property
    def delta(self) -> timedelta:
        """What is left, for torch, which takes none for all the time there is."""
        return timedelta(seconds=max(self.left, 0.001))

    @property
    def over(self) -> bool:
        return self.left <= 0

    @property
    def text(self) -> str:
        return f"the run was ended after {self.seconds:g} s (raise --timeout if this is only slow)"


@dataclass(frozen=True)
class Party:
    """The ranks of one run: the node of each, what they run on (cpu, cuda), and how long they may take."""

    nodes: tuple[int, ...]
    device: str
    timeout_seconds: float

    @property
    def ranks(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, eq=False)
class Task:
    """What every rank of a party does. `work` imports torch when it is called; it gives text."""

    party: Party
    work: "Callable[[Wire], str]"
