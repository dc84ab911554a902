"""Jobs for the launcher tests: real emissions of the small model.

On machines with or without host and card names.
"""

from collections.abc import Sequence
from dataclasses import replace

from planner.engines import Emission, find_engine
from planner.engines.common.command import Requirement
from planner.engines.common.script import per_node
from planner.launch import job_for
from planner.launch.job import Job
from planner.topology import Topology
from tests.planner.engines.examples import TINY, machine, question


def job(
    engine: str = "sglang",
    topology: Topology | None = None,
    *,
    phase: str = "decode",
    hosts: Sequence[str] = (),
    image: str | None = None,
    version: str | None = None,
) -> Job:
    """The start of the small model on two nodes of four GPUs."""
    return emitted(engine, topology, phase=phase, hosts=hosts, image=image, version=version)[1]


def emitted(
    engine: str = "sglang",
    topology: Topology | None = None,
    *,
    phase: str = "decode",
    hosts: Sequence[str] = (),
    image: str | None = None,
    version: str | None = None,
) -> tuple[Emission, Job]:
    topology = topology or machine(4, 4)
    redundant = -TINY.experts % topology.gpu_count or topology.gpu_count
    found, problem = find_engine(engine), question(TINY, topology, redundant, phase)
    placement = found.default_placement(TINY, topology.gpu_count, redundant)
    emission = found.emit(placement, problem, "org/m", version)
    return emission, job_for(emission, problem, engine, hosts, image)


def requiring(started: Job, requirement: Requirement) -> Job:
    """The job of an engine that wants something installed, and brings it in the folder `plugin`."""
    commands = tuple(replace(command, requires=(requirement,)) for command in started.commands)
    words = [command.with_environment for command in commands]
    launch = per_node(started.title, (), started.topology, words, (requirement,))
    files = {**started.files, "launch.sh": launch, "plugin/pyproject.toml": "", "plugin/it/__init__.py": ""}
    return replace(started, commands=commands, files=files)


def with_cards(topology: Topology, *names: Sequence[str]) -> Topology:
    """The topology with these NIC names, a list for each node."""
    nodes = [
        replace(node, nics=tuple(replace(nic, name=name) for nic, name in zip(node.nics, cards, strict=True)))
        for node, cards in zip(topology.nodes, names, strict=True)
    ]
    return replace(topology, nodes=tuple(nodes))


def nameless(topology: Topology) -> Topology:
    """The topology of a preset: its nodes have no names."""
    return replace(topology, nodes=tuple(replace(node, name="") for node in topology.nodes))
