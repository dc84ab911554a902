"""What a launcher is given and what it gives: a job, and the files that start it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from planner.engines import NodeCommand, gpus_per_node
from planner.topology import Topology

SCRIPT = "launch.sh"


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
    """What every launcher module offers."""

    NAME: str
    TITLE: str
    ACCELERATORS: Sequence[str]  # kinds it can start

    def write(self, job: Job) -> Launch:
        """The launcher's files. BadInput where it cannot start this job in the plan's order."""
