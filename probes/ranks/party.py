"""What a run over ranks is: who takes part, what each does, and the fault that ends it. No torch here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.base import BadInput

if TYPE_CHECKING:  # torch comes with it
    from probes.ranks.wire import Wire


class RunFailed(BadInput):
    """A run that could not finish; the message names the ranks that stopped it and their phase."""


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
