"""Bisection bandwidth of each tier: the smallest cut between two balanced halves of its units.

    tier            units                                        resources in the graph
    NVLink domain   the GPUs of one domain                       NVLink
    node            the GPUs of one node                         what the routes between them use
    network         nodes, or racks whose nodes share NVLink     what the routes between nodes use

A cut's capacity is the maximum flow from one half to the other on the directed capacity graph (networkx). Routes are fixed and flow is not, so in a tier
with several ways (a mesh with PCIe beside it) this is an upper bound. Units that are alike and attached alike are interchangeable, so halves that
differ only in which of them they hold are one. All halves are tried while they are few; beyond that a fixed family of them, and the result says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from planner.topology.topology import Node, Resource, Topology

ALL_HALVES = 462  # of 12 units that all differ: C(12, 6) / 2


@dataclass(frozen=True)
class Bisection:
    """The smallest cut found in one tier; `needed_bytes_per_s` is what the GPUs of the weaker half could send into the tier."""

    tier: str
    where: str  # the domain or node that was cut
    units: int
    bytes_per_s: float
    needed_bytes_per_s: float
    half: tuple[int, ...]  # unit numbers on one side
    halves: int
    exact: bool
    resources: tuple[int, ...]  # indices of the resources in the graph

    @property
    def oversubscription(self) -> float:
        """Needed / available; 1 is non-blocking."""
        return self.needed_bytes_per_s / self.bytes_per_s

    @property
    def method(self) -> str:
        if not self.exact:
            return f"the smallest of {self.halves} chosen halves; the true minimum may be lower"
        return (
            f"the smallest of all {self.halves} different halves"
            if self.halves > 1
            else "any half, since all units are alike"
        )


@dataclass(frozen=True)
class _Unit:
    """GPUs that stay together, and what makes two units alike."""

    gpus: tuple[int, ...]
    kind: Any


def bisections(topology: Topology) -> tuple[Bisection, ...]:
    """The tiers that this machine has, innermost first. Where domains or nodes differ, that with the smallest cut (ties: the first)."""
    inner: list[Bisection] = []
    for tier, groups in (("NVLink domain", _domains(topology)), ("node", _nodes(topology))):
        cuts = [_bisect(topology, tier, where, units, resources) for where, units, resources in groups]
        inner += [min(cuts, key=lambda cut: cut.bytes_per_s)] if cuts else []
    units = _network_units(topology)
    routes = topology.routes
    shared = (link for links in (routes.leaf_links, routes.spine_links) for link in links.values())
    outside = sorted({index for path in (*routes.egress, *routes.ingress, *shared) for index in path})
    return (
        (*inner, _bisect(topology, "network", "all nodes", units, outside))
        if len(units) > 1
        else tuple(inner)
    )


Group = tuple[str, list[_Unit], list[int]]  # where, units, resources


def _domains(topology: Topology) -> Iterator[Group]:
    """NVLink domains of two or more GPUs, one of each kind."""
    members: dict[int, list[int]] = {}
    for gpu in topology.gpus:
        members.setdefault(gpu.domain, []).append(gpu.rank)
    seen = set()
    for domain, ranks in members.items():
        spans = dict.fromkeys(topology.gpus[rank].node for rank in ranks)
        kind = tuple(
            (
                _nameless(topology, node),
                tuple(topology.gpus[rank].index for rank in ranks if topology.gpus[rank].node == node),
            )
            for node in spans
        )
        if len(ranks) < 2 or kind in seen:
            continue
        seen.add(kind)
        used = [index for index in _used(topology, ranks) if topology.resources[index].tier == "nvlink"]
        yield f"domain {domain}", [_gpu_unit(topology, rank, used) for rank in ranks], used


def _nodes(topology: Topology) -> Iterator[Group]:
    """Nodes of two or more GPUs, one of each kind."""
    seen: set[Node] = set()
    for number in range(topology.node_count):
        node = _nameless(topology, number)
        if len(node.gpus) < 2 or node in seen:
            continue
        seen.add(node)
        ranks = [gpu.rank for gpu in topology.gpus if gpu.node == number]
        used = _used(topology, ranks)
        yield f"node{number}", [_gpu_unit(topology, rank, used) for rank in ranks], used


def _network_units(topology: Topology) -> list[_Unit]:
    """Nodes, or the groups of nodes that share NVLink switches; a GPU whose NVLink is down stays with its neighbours."""
    labels_G = topology.node_G // topology.fabric.nvlink_domain_nodes
    members: dict[int, list[int]] = {}
    for rank, label in enumerate(labels_G.tolist()):
        members.setdefault(label, []).append(rank)
    units = []
    for ranks in members.values():
        spans = dict.fromkeys(topology.gpus[rank].node for rank in ranks)
        units.append(
            _Unit(
                tuple(ranks),
                (
                    tuple(_nameless(topology, node) for node in spans),
                    tuple(topology.routes.leaf_G[ranks].tolist()),
                ),
            )
        )
    return units


def _nameless(topology: Topology, number: int) -> Node:
    return replace(topology.nodes[number], name="")


def _gpu_unit(topology: Topology, rank: int, used: list[int]) -> _Unit:
    """GPUs at one place are alike when their rates are; in a mesh each GPU is its own kind. The host counts only where routes use it."""
    gpu = topology.gpus[rank]
    node = topology.nodes[gpu.node]
    linked = rank if any(gpu.index in link.gpus for link in node.nvlink.pairs) else None
    islands = (
        (number, island) for number, island in enumerate(node.nvlink.islands) if gpu.index in island.gpus
    )
    port = tuple(
        (number, island.rates[island.gpus.index(gpu.index)].bytes_per_s) for number, island in islands
    )
    pcie = node.pcie if any(topology.resources[index].tier != "nvlink" for index in used) else None
    switch = (
        next((number for number, switch in enumerate(pcie.switches) if gpu.index in switch.gpus), None)
        if pcie
        else None
    )
    return _Unit(
        (rank,),
        (
            linked,
            port,
            (pcie.rates[gpu.index].bytes_per_s, pcie.sockets[gpu.index], switch) if pcie else None,
        ),
    )


def _used(topology: Topology, ranks: list[int]) -> list[int]:
    """Resources on the routes between these GPUs."""
    return sorted({index for i in ranks for j in ranks for index in topology.route(i, j)})


def _bisect(topology: Topology, tier: str, where: str, units: list[_Unit], used: list[int]) -> Bisection:
    import networkx as nx  # heavy: imported where it is used

    vertex = [f"node{gpu.node}/gpu{gpu.index}" for gpu in topology.gpus]
    resources = [topology.resources[index] for index in used]
    graph: Any = nx.DiGraph()
    for resource in resources:
        before = graph.get_edge_data(resource.tail, resource.head, {"capacity": 0})["capacity"]
        graph.add_edge(resource.tail, resource.head, capacity=before + round(resource.rate.bytes_per_s))
    for near, far in _joints(topology, tier, where):
        graph.add_edges_from([(near, far), (far, near)])  # no capacity: unlimited
    ports = _ports(topology, tier, resources, vertex)
    everyone = {vertex[gpu] for unit in units for gpu in unit.gpus}
    halves, exact = _halves(units)
    cuts = []
    for half in halves:
        inside = {vertex[gpu] for unit in half for gpu in units[unit].gpus}
        needed = min(sum(ports.get(gpu, 0.0) for gpu in side) for side in (inside, everyone - inside))
        cuts.append((_flow(graph, inside, everyone - inside), needed, half))
    capacity, needed, half = min(cuts, key=lambda cut: (cut[0], -cut[1], cut[2]))
    return Bisection(tier, where, len(units), capacity, needed, half, len(halves), exact, tuple(used))


def _joints(topology: Topology, tier: str, where: str) -> list[tuple[str, str]]:
    """Unknown links cost nothing: inside a node those between sockets, towards the network also those between a GPU and its socket."""
    if tier == "network":
        return list(topology.routes.joints)
    return [
        joint
        for joint in topology.routes.joints
        if tier == "node" and all(end.startswith(f"{where}/socket") for end in joint)
    ]


def _ports(topology: Topology, tier: str, resources: list[Resource], vertex: list[str]) -> dict[str, float]:
    """Bytes/s that each GPU could send into the tier. NICs that several GPUs share count once, at the first of these."""
    ports: dict[str, float] = {}
    if tier == "network":
        first = {path[-1]: gpu for gpu, path in reversed(list(enumerate(topology.routes.egress))) if path}
        return {vertex[gpu]: topology.resources[nics].rate.bytes_per_s for nics, gpu in first.items()}
    known = set(vertex)
    for resource in resources:
        if resource.tail in known:
            ports[resource.tail] = ports.get(resource.tail, 0.0) + resource.rate.bytes_per_s
    return ports


def _flow(graph: Any, inside: set[str], outside: set[str]) -> float:
    """Maximum flow between the two sets. One direction is enough: every link has the same rate both ways."""
    from networkx.algorithms.flow import maximum_flow_value, preflow_push

    graph.add_edges_from(("source", vertex) for vertex in sorted(inside))
    graph.add_edges_from((vertex, "sink") for vertex in sorted(outside))
    value = maximum_flow_value(graph, "source", "sink", flow_func=preflow_push)
    graph.remove_nodes_from(["source", "sink"])
    return float(value)


def _halves(units: list[_Unit]) -> tuple[list[tuple[int, ...]], bool]:
    """Balanced halves (sizes differ by one at most) as tuples of unit numbers: all that differ, or a fixed family."""
    kinds: dict[Any, list[int]] = {}
    for index, unit in enumerate(units):
        kinds.setdefault(unit.kind, []).append(index)
    groups = list(kinds.values())
    size = len(units) // 2
    if len(groups) > 12:
        return _family(len(units), size, groups), False
    found: dict[tuple[int, ...], None] = {}
    for counts in _splits([len(group) for group in groups], size):
        half = tuple(
            sorted(index for group, count in zip(groups, counts, strict=True) for index in group[:count])
        )
        mirror = tuple(len(group) - count for group, count in zip(groups, counts, strict=True))
        if 2 * size < len(units) or counts >= mirror:  # of two mirrored halves one is enough
            found[half] = None
        if len(found) > ALL_HALVES:
            return _family(len(units), size, groups), False
    return list(found), True


def _splits(available: list[int], total: int) -> Iterator[tuple[int, ...]]:
    """All ways to take `total` from groups of these sizes."""
    if len(available) == 1:
        if total <= available[0]:
            yield (total,)
        return
    rest = sum(available[1:])
    for first in range(max(0, total - rest), min(available[0], total) + 1):
        for tail in _splits(available[1:], total - first):
            yield (first, *tail)


def _family(count: int, size: int, groups: list[list[int]]) -> list[tuple[int, ...]]:
    """Consecutive units from several starting points, every other unit, and kind after kind: cuts along leaves, and across them."""
    starts = (
        range(0, count, max(count // 16, 1))[:8] if count <= 128 else (0, count // 4)
    )  # a flow over thousands of GPUs takes seconds
    runs = [[(start + offset) % count for offset in range(size)] for start in starts]
    by_kind = [index for group in groups for index in group][:size]
    spread = sorted(range(count), key=lambda index: (index % 2, index))[:size]
    return list(dict.fromkeys(tuple(sorted(half)) for half in (*runs, spread, by_kind)))
