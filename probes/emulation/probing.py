"""The ranks' part of a probe of an emulated cluster: its links are checked, then measured as if unknown."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from planner.base import read_json, write_json
from planner.topology import Topology, topology_from_dict
from probes.emulation.check import CheckedLink, check_links
from probes.emulation.cluster import Emulation
from probes.emulation.observe import Observation, observe
from probes.emulation.patterns import patterns
from probes.emulation.unknown import before_measuring
from probes.ranks.party import Party, Task
from probes.ranks.run import run_over_ranks

if TYPE_CHECKING:  # torch is imported in the ranks
    from probes.ranks.wire import Wire

_JOB_FILE = "cluster.json"


def observe_cluster(
    cluster: Emulation, timeout_seconds: float
) -> tuple[tuple[CheckedLink, ...], tuple[Observation, ...]]:
    """What the check of its links showed, and what patterns of traffic took. RunFailed where it is off."""

    def save(folder: Path) -> None:
        write_json(folder / _JOB_FILE, {"timeout": timeout_seconds, "topology": cluster.topology.to_dict()})

    task = _task(cluster.topology, timeout_seconds)
    _, texts = run_over_ranks(task, "probe", save, __name__, cluster)
    told = json.loads(texts[0])
    links = tuple(CheckedLink(**one) for one in told["links"])
    return links, tuple(Observation(**one) for one in told["observations"])


def task_in(folder: Path) -> Task:
    """The task of a rank that `probes.ranks` has started."""
    job = read_json(folder / _JOB_FILE)
    return _task(topology_from_dict(job["topology"], _JOB_FILE), job["timeout"])


def _task(shaped: Topology, timeout_seconds: float) -> Task:
    def work(wire: "Wire") -> str:
        links = check_links(wire, shaped)
        observations = observe(wire, patterns(before_measuring(shaped)))
        told = {"links": list(map(asdict, links)), "observations": list(map(asdict, observations))}
        return json.dumps(told)

    return Task(Party(tuple(shaped.node_G.tolist()), "cpu", timeout_seconds), work)
