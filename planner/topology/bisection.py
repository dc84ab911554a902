"""Bisection bandwidth of each tier: the smallest cut between two balanced halves of its units.

    tier            units                                        resources in the graph
    NVLink domain   the GPUs of one domain                       NVLink
    node            the GPUs of one node                         what the routes between them use
    network         nodes, or racks whose nodes share NVLink     what the routes between nodes use

A cut's capacity is the maximum flow from one half to the other on the directed capacity graph (networkx).
Routes are fixed and flow is not, so in a tier with several ways (a mesh with PCIe beside it) this is an upper
bound. All halves are tried while they are few; beyond that a fixed family of them, and the result says so.
"""

from dataclasses import dataclass
from typing import Any

from planner.topology.halves import halves
from planner.topology.resources import Resource
from planner.topology.tier_units import Tier, network, nodes, nvlink_domains
from planner.topology.topology import Topology


@dataclass(frozen=True)
class Bisection:
    """The smallest cut found in one tier.

    `needed_bytes_per_s` is what the GPUs of the weaker half could send into the tier.
    """

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
        if self.halves == 1:
            return "any half, since all units are alike"
        return f"the smallest of all {self.halves} different halves"


def bisections(topology: Topology) -> tuple[Bisection, ...]:
    """The tiers that this machine has, innermost first.

    Where domains or nodes differ, that with the smallest cut (ties: the first).
    """
    found: list[Bisection] = []
    for tiers in (nvlink_domains(topology), nodes(topology)):
        cuts = [_bisect(topology, tier) for tier in tiers]
        found += [min(cuts, key=lambda cut: cut.bytes_per_s)] if cuts else []
    outside = network(topology)
    if len(outside.units) > 1:
        found.append(_bisect(topology, outside))
    return tuple(found)


def _bisect(topology: Topology, tier: Tier) -> Bisection:
    vertex = [f"node{gpu.node}/gpu{gpu.index}" for gpu in topology.gpus]
    resources = [topology.resources[index] for index in tier.resources]
    graph = _capacity_graph(resources, _joints(topology, tier))
    ports = _ports(topology, tier, resources, vertex)
    everyone = {vertex[gpu] for unit in tier.units for gpu in unit.gpus}
    tried, exact = halves([unit.kind for unit in tier.units])
    cuts = []
    for half in tried:
        inside = {vertex[gpu] for unit in half for gpu in tier.units[unit].gpus}
        outside = everyone - inside
        needed = min(sum(ports.get(gpu, 0.0) for gpu in side) for side in (inside, outside))
        cuts.append((_flow(graph, inside, outside), needed, half))
    capacity, needed, half = min(cuts, key=lambda cut: (cut[0], -cut[1], cut[2]))
    return Bisection(
        tier.name,
        tier.where,
        len(tier.units),
        capacity,
        needed,
        half,
        len(tried),
        exact,
        tuple(tier.resources),
    )


def _capacity_graph(resources: list[Resource], joints: list[tuple[str, str]]) -> Any:
    import networkx as nx  # heavy: imported where it is used

    graph: Any = nx.DiGraph()
    for resource in resources:
        before = graph.get_edge_data(resource.tail, resource.head, {"capacity": 0})["capacity"]
        graph.add_edge(resource.tail, resource.head, capacity=before + round(resource.rate.bytes_per_s))
    for near, far in joints:
        graph.add_edges_from([(near, far), (far, near)])  # no capacity: unlimited
    return graph


def _joints(topology: Topology, tier: Tier) -> list[tuple[str, str]]:
    """Unknown links cost nothing.

    Inside a node those between sockets, towards the network also those between a GPU and its socket.
    """
    joints = topology.routes.joints
    if tier.name == "network":
        return list(joints)
    if tier.name == "node":
        sockets = f"{tier.where}/socket"
        return [(near, far) for near, far in joints if near.startswith(sockets) and far.startswith(sockets)]
    return []


def _ports(topology: Topology, tier: Tier, resources: list[Resource], vertex: list[str]) -> dict[str, float]:
    """Bytes/s that each GPU could send into the tier.

    NICs that several GPUs share count once, at the first of these.
    """
    if tier.name == "network":
        first = {path[-1]: gpu for gpu, path in reversed(list(enumerate(topology.routes.egress))) if path}
        return {vertex[gpu]: topology.resources[nics].rate.bytes_per_s for nics, gpu in first.items()}
    ports: dict[str, float] = {}
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
