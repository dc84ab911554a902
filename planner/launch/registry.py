"""The launchers of this room, by name, and what each makes of an emission.

Each is a file of its own; none knows an engine's rules. An engine's launch.sh asks its caller for NODE_RANK
and HEAD_ADDRESS, or for MPI; a launcher gives them, each in its own way. A plan's rank order is that of its
nodes. No launcher keeps it by itself: torchrun's rendezvous sorts hosts by name (node7 after node66), Slurm
and Kubernetes have their own order.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from planner.base import BadInput, find_named, flat, modules_with
from planner.engines import Emission, find_engine
from planner.launch.job import MIXED, Job, Launcher
from planner.launch.validating import validates
from planner.problem import Problem
from planner.topology import Topology

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


def launcher_names() -> tuple[str, ...]:
    return tuple(sorted(_launchers()))


def find_launcher(name: str) -> Launcher:
    return find_named(name, _launchers(), "launcher")


def _launchers() -> dict[str, Launcher]:
    """Every module here that has a NAME is a launcher; the others are what launchers share."""
    modules = modules_with("planner.launch", "NAME").values()
    return {module.NAME: cast("Launcher", module) for module in modules}


def job_for(
    emission: Emission,
    problem: Problem,
    engine: str,
    hosts: Sequence[str] = (),
    image: str | None = None,
    role: str = MIXED,
) -> Job:
    """What is to be started of an emission. BadInput where its engine starts nothing."""
    found, topology = find_engine(engine), problem.topology
    if not emission.commands:
        raise BadInput(f"{found.TITLE} has no command that moeplan writes; there is nothing to launch")
    title = flat(f"{found.TITLE} {found.VERSION}, {problem.model.name} on {problem.gpus} GPUs")
    transport = found.transport(problem.workload.phase, topology, problem.model)
    names = hosts_of(topology, hosts)
    return Job(
        title, engine, topology, transport, emission.files, emission.commands, names, image,
        problem.model.name, role, getattr(found, "dynamo_words", None), getattr(found, "KV_CONNECTOR", ""),
    )  # fmt: skip


def launched(emission: Emission, job: Job, launcher: str) -> Emission:
    """The emission with the launcher's files.

    BadInput where the launcher asks for accelerators of another kind.
    """
    found = find_launcher(launcher)
    if job.accelerator not in found.ACCELERATORS:
        raise BadInput(
            f"--launcher {launcher} asks for {', '.join(found.ACCELERATORS)} accelerators; "
            f"{job.engine} runs on {job.accelerator}: use --launcher shell"
        )
    written = found.write(job)
    validate = getattr(found, "validate", None)
    check = validate(job) if validate and validates(job) else {}
    files, notes = {**emission.files, **written.files, **check}, (*emission.notes, *written.notes)
    return replace(emission, files=files, launch=files[written.first], notes=notes)


def hosts_of(topology: Topology, given: Sequence[str] = ()) -> tuple[str, ...]:
    """Host names in the plan's node order.

    Those given, else the topology's own where every node has one of its own, else none.
    """
    names = tuple(given) or tuple(node.name for node in topology.nodes)
    bad = [name for name in names if not _HOST.fullmatch(name)]
    usable = not bad and len(set(names)) == len(names)
    if given and not (usable and len(names) == topology.node_count):
        fault = f"{bad[0]!r} is no host name" if bad else f"{len(set(names))} distinct names"
        wanted = f"give the plan's {topology.node_count} hosts in its node order, like node66,node7"
        raise BadInput(f"--hosts: {fault}; {wanted}")
    return names if usable else ()


def hosts_of_pair(halves: Sequence[Topology], given: Sequence[str] = ()) -> list[tuple[str, ...]]:
    """Host names of each half of a pair, prefill's first. BadInput where both would sit on one host."""
    if not given:
        found = [hosts_of(topology) for topology in halves]
    else:
        first = halves[0].node_count
        found = [tuple(given[:first]), tuple(given[first:])]
    twice = sorted(set(found[0]) & set(found[1]))
    counts = [topology.node_count for topology in halves]
    if twice or (given and len(given) != sum(counts)):
        fault = f"{twice[0]} is in both halves of the pair" if twice else f"{len(given)} names for a pair"
        wanted = f"give the {counts[0]} hosts of prefill, then the {counts[1]} of decode"
        raise BadInput(f"--hosts: {fault}; {wanted}")
    return found
