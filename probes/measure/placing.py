"""Which GPU of a topology each rank of a benchmark was, and what its all-to-all sent between them. Pure.

Shapes: G GPUs of the topology.
"""

from itertools import groupby

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.topology import Topology
from probes.base.facts import MeasureFacts


def placed(topology: Topology, facts: MeasureFacts) -> list[int]:
    """The GPU of each rank.

    Hosts are found by name; where the nodes have none, or all have others, they are the nodes in order.
    """
    source, have = facts.source, f"the topology {topology.name} has {topology.gpu_count} GPUs"
    if facts.ranks > topology.gpu_count:
        nodes = -(-facts.ranks // len(topology.nodes[0].gpus))
        more = f"describe all its hosts, as in NAME:{nodes} of a preset or --nodes {nodes} of an import"
        raise BadInput(f"{source}: ran over {facts.ranks} ranks, {have}; {more}")
    if not facts.hosts:
        if facts.ranks == topology.gpu_count:
            return list(range(facts.ranks))
        where = f"does not say which hosts its {facts.ranks} ranks were on, of {topology.gpu_count} GPUs"
        raise BadInput(f"{source}: {where}; measure all of them")
    hosts = [(host, len(list(members))) for host, members in groupby(facts.hosts)]
    if len({host for host, _ in hosts}) != len(hosts):
        raise BadInput(f"{source}: its ranks go back and forth between hosts; start it host by host")
    starts = np.cumsum([0, *(len(node.gpus) for node in topology.nodes)]).tolist()
    gpus: list[int] = []
    for number, (host, count) in zip(_nodes(topology, hosts, source), hosts, strict=True):
        misfit = _misfit(topology, number, count)
        if misfit:
            what = f"{count} ranks on host {host} do not fit the topology {topology.name}"
            raise BadInput(f"{source}: {what}: {misfit}")
        gpus += range(starts[number], starts[number] + count)
    return gpus


def _nodes(topology: Topology, hosts: list[tuple[str, int]], source: str) -> list[int]:
    """The number of each host's node."""
    names = {node.name: number for number, node in enumerate(topology.nodes) if node.name}
    known = [names.get(host) for host, _ in hosts]
    found = [number for number in known if number is not None]
    if names and None in known and (found or len(hosts) < topology.node_count):
        stranger = hosts[known.index(None)][0]
        raise BadInput(f"{source}: ran on host {stranger}, which the topology {topology.name} does not have")
    return found or list(range(len(hosts)))


def _misfit(topology: Topology, number: int, ranks: int) -> str:
    """Why so many ranks are not all GPUs of that node; empty where they are."""
    if number >= topology.node_count:
        return f"it has {topology.node_count} nodes"
    gpus = len(topology.nodes[number].gpus)
    return f"its node {number} has {gpus} GPUs" if gpus != ranks else ""


def groups_of(facts: MeasureFacts) -> list[list[int]]:
    """The ranks of each collective that ran at the same time.

    Rails hold every n-th rank, domains the ranks in a row.
    """
    size = facts.ranks // facts.groups
    if facts.scope == "rail":
        return [list(range(first, facts.ranks, facts.groups)) for first in range(facts.groups)]
    return [list(range(first * size, (first + 1) * size)) for first in range(facts.groups)]


def exchanging(topology: Topology, facts: MeasureFacts) -> tuple[tuple[int, ...], ...]:
    """The GPUs of each group of an all-to-all. BadInput where it is none, or does not fit the topology."""
    if facts.collective != "alltoall" or facts.ranks < 2:
        ran = f"is {facts.collective} over {facts.ranks} ranks"
        needed = "the rate of links is taken from an all-to-all of at least two"
        raise BadInput(f"{facts.source}: {ran}; {needed}")
    if facts.scope == "all" and facts.groups > 1:
        raise BadInput(f"{facts.source}: ran in {facts.groups} groups that are neither domains nor rails")
    gpus = placed(topology, facts)
    return tuple(tuple(gpus[rank] for rank in members) for members in groups_of(facts))


def sent_GG(topology: Topology, facts: MeasureFacts) -> npt.NDArray[np.float64]:
    """What an all-to-all of size 1 sends between the GPUs, in bytes."""
    bytes_GG = np.zeros((topology.gpu_count, topology.gpu_count))
    for here in exchanging(topology, facts):
        bytes_GG[np.ix_(here, here)] = 1 / len(here)
    np.fill_diagonal(bytes_GG, 0.0)
    return bytes_GG
