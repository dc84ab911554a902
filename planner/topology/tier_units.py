"""What is cut in two in each tier: GPUs that stay together as a unit, and what makes two units alike."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from planner.topology.nodes import Node
from planner.topology.pcie import Pcie
from planner.topology.topology import Gpu, Topology


@dataclass(frozen=True)
class Unit:
    """GPUs that stay together, and what makes two units alike."""

    gpus: tuple[int, ...]
    kind: Hashable


@dataclass(frozen=True)
class Tier:
    """Units and the resources between them; `where` is the domain or node that they make up."""

    name: str
    where: str
    units: list[Unit]
    resources: list[int]


def nvlink_domains(topology: Topology) -> Iterator[Tier]:
    """NVLink domains of two or more GPUs, one of each kind."""
    members: dict[int, list[Gpu]] = {}
    for gpu in topology.gpus:
        members.setdefault(gpu.domain, []).append(gpu)
    seen = set()
    for domain, gpus in members.items():
        indices: dict[int, list[int]] = {}
        for gpu in gpus:
            indices.setdefault(gpu.node, []).append(gpu.index)
        kind = tuple((_nameless(topology, node), tuple(inside)) for node, inside in indices.items())
        if len(gpus) < 2 or kind in seen:
            continue
        seen.add(kind)
        used = [index for index in _between(topology, gpus) if topology.resources[index].tier == "nvlink"]
        yield Tier("NVLink domain", f"domain {domain}", _gpu_units(topology, gpus, used), used)


def nodes(topology: Topology) -> Iterator[Tier]:
    """Nodes of two or more GPUs, one of each kind."""
    seen: set[Node] = set()
    for number in range(topology.node_count):
        node = _nameless(topology, number)
        if len(node.gpus) < 2 or node in seen:
            continue
        seen.add(node)
        gpus = [gpu for gpu in topology.gpus if gpu.node == number]
        used = _between(topology, gpus)
        yield Tier("node", f"node{number}", _gpu_units(topology, gpus, used), used)


def network(topology: Topology) -> Tier:
    """Nodes, or the groups of nodes that share NVLink switches.

    A GPU whose NVLink is down stays with its neighbours.
    """
    members: dict[int, list[Gpu]] = {}
    for gpu in topology.gpus:
        members.setdefault(gpu.node // topology.fabric.nvlink_domain_nodes, []).append(gpu)
    units = [_network_unit(topology, gpus) for gpus in members.values()]
    routes = topology.routes
    shared = (link for links in (routes.leaf_links, routes.spine_links) for link in links.values())
    used = sorted({index for path in (*routes.egress, *routes.ingress, *shared) for index in path})
    return Tier("network", "all nodes", units, used)


def _network_unit(topology: Topology, gpus: list[Gpu]) -> Unit:
    ranks = [gpu.rank for gpu in gpus]
    kinds = tuple(_nameless(topology, node) for node in dict.fromkeys(gpu.node for gpu in gpus))
    return Unit(tuple(ranks), (kinds, tuple(topology.routes.leaf_G[ranks].tolist())))


def _nameless(topology: Topology, number: int) -> Node:
    return replace(topology.nodes[number], name="")


def _between(topology: Topology, gpus: list[Gpu]) -> list[int]:
    """Resources on the routes between these GPUs."""
    return sorted({index for i in gpus for j in gpus for index in topology.route(i.rank, j.rank)})


def _gpu_units(topology: Topology, gpus: list[Gpu], used: list[int]) -> list[Unit]:
    """The host makes a difference only where routes use it."""
    over_host = any(topology.resources[index].tier != "nvlink" for index in used)
    return [Unit((gpu.rank,), _gpu_kind(gpu, topology.nodes[gpu.node], over_host=over_host)) for gpu in gpus]


def _gpu_kind(gpu: Gpu, node: Node, *, over_host: bool) -> Hashable:
    """GPUs at one place are alike when their rates are; in a mesh each GPU is its own kind."""
    linked = gpu.rank if any(gpu.index in link.gpus for link in node.nvlink.pairs) else None
    ports = tuple(
        (number, island.rates[island.gpus.index(gpu.index)].bytes_per_s)
        for number, island in enumerate(node.nvlink.islands)
        if gpu.index in island.gpus
    )
    return linked, ports, _host_kind(gpu.index, node.pcie) if node.pcie and over_host else None


def _host_kind(gpu: int, pcie: Pcie) -> Hashable:
    switch = next((number for number, switch in enumerate(pcie.switches) if gpu in switch.gpus), None)
    return pcie.rates[gpu].bytes_per_s, pcie.sockets[gpu], switch
