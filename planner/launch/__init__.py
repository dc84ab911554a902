"""Launchers: how a plan's node commands are started with its rank order kept. One module a launcher; this one finds them. None knows an engine's rules.

An engine's launch.sh asks its caller for NODE_RANK and HEAD_ADDRESS, or for MPI; a launcher gives them, each in its own way. A plan's rank order is that
of its nodes. No launcher keeps it by itself: torchrun's rendezvous sorts hosts by name (node7 after node66), Slurm and Kubernetes have their own order.
"""

import difflib
import importlib
import pkgutil
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

from planner.engines import Emission, find_engine, gpus_per_node
from planner.engines.command import NodeCommand
from planner.errors import BadInput
from planner.problem import Problem
from planner.topology import Topology

SCRIPT = "launch.sh"
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


@dataclass(frozen=True)
class Job:
    """What a launcher starts. `hosts`: the names of the nodes in the plan's order, empty where they are not known."""

    title: str
    engine: str
    topology: Topology
    transport: str
    files: Mapping[str, str]  # launch.sh among them
    commands: tuple[NodeCommand, ...]
    hosts: tuple[str, ...] = ()
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
    """Files that are written besides the engine's own, or in their place; `first` is the one that a person starts."""

    files: Mapping[str, str]
    first: str
    notes: tuple[str, ...] = ()


class Launcher(Protocol):
    """What every launcher module offers."""

    NAME: str
    TITLE: str
    ACCELERATORS: Sequence[str]  # kinds it can start

    def write(self, job: Job) -> Launch:
        """The launcher's files. BadInput where it cannot start this job in the plan's order."""


def launcher_names() -> tuple[str, ...]:
    return tuple(sorted(_launchers()))


def find_launcher(name: str) -> Launcher:
    known = _launchers()
    if name not in known:
        nearest = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.4)
        meant = f"did you mean '{nearest[0]}'? " if nearest else ""
        raise BadInput(f"launcher {name!r} is unknown; {meant}known are {', '.join(sorted(known))}")
    return known[name]


def job_for(emission: Emission, problem: Problem, engine: str, hosts: Sequence[str] = (), image: str | None = None) -> Job:
    """What is to be started of an emission. BadInput where its engine starts nothing."""
    found, topology = find_engine(engine), problem.topology
    if not emission.commands:
        raise BadInput(f"{found.TITLE} has no command that moeplan writes; there is nothing to launch")
    title = f"{found.TITLE} {found.VERSION}, {problem.model.name} on {problem.gpus} GPUs"
    transport = found.transport(problem.workload.phase, topology, problem.model)
    return Job(title, engine, topology, transport, emission.files, emission.commands, hosts_of(topology, hosts), image)


def launched(emission: Emission, job: Job, launcher: str) -> Emission:
    """The emission with the launcher's files. BadInput where the launcher asks for accelerators of another kind."""
    found = find_launcher(launcher)
    if job.accelerator not in found.ACCELERATORS:
        raise BadInput(
            f"--launcher {launcher} asks for {', '.join(found.ACCELERATORS)} accelerators; {job.engine} runs on {job.accelerator}: use --launcher shell"
        )
    written = found.write(job)
    files = {**emission.files, **written.files}
    return replace(emission, files=files, launch=files[written.first], notes=(*emission.notes, *written.notes))


def hosts_of(topology: Topology, given: Sequence[str] = ()) -> tuple[str, ...]:
    """Host names in the plan's node order: those given, else the topology's own where every node has one of its own, else none."""
    names = tuple(given) or tuple(node.name for node in topology.nodes)
    bad = [name for name in names if not _HOST.fullmatch(name)]
    if given and (bad or len(set(names)) != len(names) or len(names) != topology.node_count):
        fault = f"{bad[0]!r} is no host name" if bad else f"{len(set(names))} distinct names"
        raise BadInput(f"--hosts: {fault}; give the plan's {topology.node_count} hosts in its node order, like node66,node7")
    return () if bad or len(set(names)) != len(names) else names


def _launchers() -> dict[str, Launcher]:
    """Every module here that has a NAME is a launcher; the others are what launchers share."""
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    return {module.NAME: cast("Launcher", module) for module in modules if hasattr(module, "NAME")}
