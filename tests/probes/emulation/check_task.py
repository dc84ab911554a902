"""A task for ranks: check the links of their cluster against the topology in the job's folder."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from planner.base import read_json
from planner.topology import Topology, topology_from_dict
from probes.emulation.check import check_links
from probes.ranks.party import Party, Task

if TYPE_CHECKING:
    from probes.ranks.wire import Wire

FILE = "expected.json"


def task_in(folder: Path) -> Task:
    return task(topology_from_dict(read_json(folder / FILE), FILE))


def task(expected: Topology) -> Task:
    def work(wire: "Wire") -> str:
        return json.dumps([asdict(link) for link in check_links(wire, expected)])

    return Task(Party(tuple(expected.node_G.tolist()), "cpu", 120.0), work)
