"""From the description of the nodes and the fabric to `Routes`.

Makes the resources, and looks up what each pair of GPUs uses (rules in planner/topology/routes.py).
"""

from collections import Counter

import numpy as np

from planner.base import BadInput, Rate, sum_rates, weakest
from planner.topology.fabric import Fabric
from planner.topology.host import Host
from planner.topology.machine import by_first_rank
from planner.topology.nodes import Node
from planner.topology.resources import LinkEnds, Resources
from planner.topology.routes import Routes

RAILS = 1 << 20  # more rails than a node has NICs, so that leaf = group * RAILS + rail


def compile_routes(nodes: tuple[Node, ...], fabric: Fabric) -> Routes:
    """The routes of a machine. BadInput where two GPUs have no way to each other."""
    wiring = _Wiring(nodes, fabric)
    switches = 0
    for number, (start, node) in enumerate(by_first_rank(nodes)):
        host = Host(number, start, node, wiring.resources)
        wiring.join_nvlink(host, switches)
        wiring.join_pairs(host)
        wiring.join_through_host(host)
        wiring.join_network(host)
        switches += len(node.nvlink.islands)
    wiring.check_reach()
    wiring.join_leaves()
    return wiring.routes()


class _Wiring:
    """The tables of `Routes` while they grow; lives for one call of `compile_routes`."""

    def __init__(self, nodes: tuple[Node, ...], fabric: Fabric) -> None:
        self.fabric = fabric
        self.resources = Resources()
        self.local: dict[tuple[int, int], tuple[int, ...]] = {}
        self.node_G = np.repeat(np.arange(len(nodes)), [len(node.gpus) for node in nodes])
        count = len(self.node_G)
        self.switch_G, self.leaf_G, self.spine_G = (np.full(count, -1) for _ in range(3))
        self.nvlink_out_G, self.nvlink_in_G = (np.full(count, -1) for _ in range(2))
        self.egress: list[tuple[int, ...]] = [()] * count
        self.ingress: list[tuple[int, ...]] = [()] * count
        self.leaf_nics: dict[int, list[Rate]] = {}
        self.spine_of_leaf: dict[int, int] = {}
        self.leaf_links: dict[int, LinkEnds] = {}
        self.spine_links: dict[int, LinkEnds] = {}

    def join_nvlink(self, host: Host, switches: int) -> None:
        span = self.fabric.nvlink_domain_nodes
        for offset, island in enumerate(host.node.nvlink.islands):
            label = host.number // span if span > 1 else switches + offset
            for gpu, rate in zip(island.gpus, island.rates, strict=True):
                vertex, rank = host.gpu(gpu), host.start + gpu
                link = self.resources.add_link(f"{vertex}/nvlink", "nvlink", rate, vertex, f"nvswitch{label}")
                self.switch_G[rank] = label
                self.nvlink_out_G[rank], self.nvlink_in_G[rank] = link

    def join_pairs(self, host: Host) -> None:
        for link in host.node.nvlink.pairs:
            low, high = sorted(link.gpus)
            for a, b in ((low, high), (high, low)):
                name = f"{host.gpu(a)}/nvlink/gpu{b}"
                resource = self.resources.add(name, "nvlink", link.rate, host.gpu(a), host.gpu(b))
                self.local[host.start + a, host.start + b] = (resource,)

    def join_through_host(self, host: Host) -> None:
        """Pairs of the node that no NVLink joins."""
        switch_of = self.switch_G[host.start : host.start + len(host.node.gpus)].tolist()
        for a, switch in enumerate(switch_of):
            for b, other in enumerate(switch_of):
                pair = host.start + a, host.start + b
                if a == b or pair in self.local or switch == other >= 0:
                    continue
                if not host.ports:
                    raise BadInput(
                        f"{host.words()}: GPUs {a} and {b} have no NVLink between them "
                        "and no PCIe rate is given; add 'pcie' to the node"
                    )
                (out, _), way, (_, into) = host.port(a), host.way(host.place(a), host.place(b)), host.port(b)
                self.local[pair] = (*out, *way, *into)

    def join_network(self, host: Host) -> None:
        nics = host.node.nics
        for pool in host.node.nic_pools:
            first, place = nics[pool[0]], host.nic_place(pool[0])
            leaf, spine = self._leaf(host.number, first.rail)
            if leaf >= 0:
                self.leaf_nics.setdefault(leaf, []).extend(nics[nic].rate for nic in pool)
                self.spine_of_leaf[leaf] = spine
            name = f"{host.name}/nic{pool[0]}" + (f"+{len(pool) - 1}" if len(pool) > 1 else "")
            rate = sum_rates(nics[nic].rate for nic in pool)
            ends = host.vertex(place), leaf_name(self.fabric, leaf)
            out, back = self.resources.add_link(name, "nic", rate, *ends)
            for gpu in first.gpus:
                here, (port_out, port_in), rank = host.place(gpu), host.port(gpu), host.start + gpu
                self.egress[rank] = (*port_out, *host.way(here, place), out)
                self.ingress[rank] = (back, *host.way(place, here), *port_in)
                self.leaf_G[rank], self.spine_G[rank] = leaf, spine

    def _leaf(self, number: int, rail: int) -> tuple[int, int]:
        fabric = self.fabric
        if fabric.kind == "none":
            return -1, -1
        group = number // fabric.nodes_per_leaf
        spine = number // fabric.nodes_per_pod if fabric.nodes_per_pod else -1
        return (group if fabric.kind == "leaf-spine" else group * RAILS + rail), spine

    def check_reach(self) -> None:
        """A GPU needs a NIC as soon as a GPU of another node is outside its NVLink domain."""
        nodes, switches = self.node_G.tolist(), self.switch_G.tolist()
        of_node, of_switch = Counter(nodes), Counter(switches)
        of_both = Counter(zip(nodes, switches, strict=True))
        for gpu, (node, switch) in enumerate(zip(nodes, switches, strict=True)):
            mates = of_switch[switch] - of_both[node, switch] if switch >= 0 else 0
            if not self.egress[gpu] and len(nodes) - of_node[node] > mates:
                alone = f"GPU {gpu - nodes.index(node)} has no NIC"
                raise BadInput(
                    f"node {node}: {alone}, so it cannot reach the other nodes; "
                    "list the NIC it uses, or plan for one node"
                )

    def join_leaves(self) -> None:
        """The uplinks of leaves, and those of the spines above them."""
        fabric = self.fabric
        below_spine: dict[int, list[Rate]] = {}
        for leaf, rates in sorted(self.leaf_nics.items()):
            name, spine = leaf_name(fabric, leaf), self.spine_of_leaf[leaf]
            rate = _uplink(rates, fabric, "oversubscription")
            below_spine.setdefault(spine, []).append(rate)
            self.leaf_links[leaf] = self.resources.add_uplink(name, "leaf", rate, name, _spine_name(spine))
        for spine, rates in sorted(below_spine.items()):
            if spine >= 0:
                name, rate = _spine_name(spine), _uplink(rates, fabric, "pod_oversubscription")
                self.spine_links[spine] = self.resources.add_uplink(name, "spine", rate, name, "core")

    def routes(self) -> Routes:
        return Routes(
            resources=tuple(self.resources.made),
            node_G=self.node_G,
            switch_G=self.switch_G,
            leaf_G=self.leaf_G,
            spine_G=self.spine_G,
            nvlink_out_G=self.nvlink_out_G,
            nvlink_in_G=self.nvlink_in_G,
            local=self.local,
            egress=tuple(self.egress),
            ingress=tuple(self.ingress),
            leaf_links=self.leaf_links,
            spine_links=self.spine_links,
            joints=tuple(self.resources.joints),
        )


def leaf_name(fabric: Fabric, leaf: int) -> str:
    """'leaf2', 'leaf2/rail5', or 'network' where the fabric has no leaves."""
    if leaf < 0:
        return "network"
    return f"leaf{leaf}" if fabric.kind == "leaf-spine" else f"leaf{leaf // RAILS}/rail{leaf % RAILS}"


def _spine_name(spine: int) -> str:
    return "spine" if spine < 0 else f"spine{spine}"


def _uplink(rates: list[Rate], fabric: Fabric, ratio: str) -> Rate:
    """What the links below have together over that ratio; where that was measured, what was stated beside."""
    total, measured, stated = sum_rates(rates), getattr(fabric, ratio), getattr(fabric.as_stated, ratio)
    evidence = weakest((total.evidence, fabric.as_stated.evidence))
    if measured == stated:
        return Rate(total.bytes_per_s / stated, evidence)
    line = weakest((total.as_stated.evidence, fabric.as_stated.evidence))
    if line.kind == "measured":
        return Rate(total.bytes_per_s / measured, fabric.evidence)
    return Rate(
        total.bytes_per_s / measured, fabric.evidence, Rate(total.as_stated.bytes_per_s / stated, line)
    )
