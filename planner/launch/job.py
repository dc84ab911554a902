"""What a launcher is given and what it gives: a job, and the files that start it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from planner.engines import NodeCommand, gpus_per_node
from planner.topology import Topology

SCRIPT = "launch.sh"
MIXED, PREFILL, DECODE = "mixed", "prefill", "decode"  # what a server is for: all, or half of a pair


@dataclass(frozen=True)
class Job:
    """What a launcher starts."""

    title: str
    engine: str
    topology: Topology
    transport: str
    files: Mapping[str, str]  # launch.sh among them
    commands: tuple[NodeCommand, ...]
    hosts: tuple[str, ...] = ()  # names of the nodes in the plan's order, empty where they are not known
    image: str | None = None  # container image, for launchers that need one
    model: str = ""  # the plan's name of it
    role: str = MIXED  # the server for all traffic, or prefill or decode: half of a pair
    # The command's words as a worker of ai-dynamo has them; None where the engine says of no such worker.
    worker_words: Callable[[Sequence[str]], list[str]] | None = None
    kv_connector: str = (
        ""  # how a decode server of the engine is handed what prefill computed, by llm-d's name
    )

    @property
    def label(self) -> str:
        """What tells this half of a pair from the other: empty for a server of all traffic."""
        return "" if self.role == MIXED else self.role

    @property
    def nodes(self) -> int:
        return len(self.commands)

    @property
    def per_gpu(self) -> bool:
        return self.commands[0].per_gpu

    @property
    def accelerator(self) -> str:
        return self.commands[0].accelerator

    @property
    def gpus_of_nodes(self) -> tuple[int, ...]:
        return gpus_per_node(self.topology)


@dataclass(frozen=True)
class Launch:
    """What a launcher adds to an emission."""

    files: Mapping[str, str]  # written besides the engine's own, or in their place
    first: str  # the one that a person starts
    notes: tuple[str, ...] = ()


class Launcher(Protocol):
    """What every launcher module offers.

    One that can also start `moeplan validate` on the same hosts, in the same order, has `validate(job)`: its
    files.
    """

    NAME: str
    TITLE: str
    ACCELERATORS: Sequence[str]  # kinds it can start

    def write(self, job: Job) -> Launch:
        """The launcher's files. BadInput where it cannot start this job in the plan's order."""
