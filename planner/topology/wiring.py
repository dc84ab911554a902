"""From the description of the nodes and the fabric to `Routes`: makes the resources, and looks up what each pair of GPUs uses (rules in planner/topology/routes.py)."""

from collections import Counter

import numpy as np

from planner.base import BadInput, Rate, sum_rates, weakest
from planner.topology.nodes import Fabric, Node
from planner.topology.routes import Resource, Routes

Place = tuple[int | None, int]  # PCIe switch (None: straight on the socket), socket
Pair = tuple[int, int]  # the two resources of a link: out and in, or up and down
RAILS = 1 << 20  # more rails than a node has NICs, so that leaf = group * RAILS + rail


def compile_routes(nodes: tuple[Node, ...], fabric: Fabric) -> Routes:
    """The routes of a machine. BadInput where two GPUs have no way to each other."""
    wiring = _Wiring(nodes, fabric)
    switches = start = 0
    for number, node in enumerate(nodes):
        host = _Host(f"node{number}", node, wiring)
        wiring.join_nvlink(number, node, start, switches)
        wiring.join_pairs(number, node, start, host)
        wiring.join_network(number, node, start, host)
        switches += len(node.nvlink.islands)
        start += len(node.gpus)
    wiring.check_reach()
    return wiring.routes()


class _Wiring:
    """The tables of `Routes` while they grow; lives for one call of `compile_routes`."""

    def __init__(self, nodes: tuple[Node, ...], fabric: Fabric) -> None:
        self.fabric = fabric
        self.resources: list[Resource] = []
        self.local: dict[tuple[int, int], tuple[int, ...]] = {}
        self.joints: list[tuple[str, str]] = []
        self.node_G = np.repeat(np.arange(len(nodes)), [len(node.gpus) for node in nodes])
        count = len(self.node_G)
        self.switch_G, self.leaf_G, self.spine_G, self.nvlink_out_G, self.nvlink_in_G = (
            np.full(count, -1) for _ in range(5)
        )
        self.egress: list[tuple[int, ...]] = [()] * count
        self.ingress: list[tuple[int, ...]] = [()] * count
        self.leaf_nics: dict[int, list[Rate]] = {}
        self.spine_of_leaf: dict[int, int] = {}

    def add(self, name: str, tier: str, rate: Rate, tail: str, head: str) -> int:
        self.resources.append(Resource(name, tier, rate, tail, head))
        return len(self.resources) - 1

    def add_link(
        self, name: str, tier: str, rate: Rate, near: str, far: str, words: tuple[str, str] = ("out", "in")
    ) -> Pair:
        """Both directions of a link, of equal rate: the bisection relies on that symmetry."""
        return self.add(f"{name}/{words[0]}", tier, rate, near, far), self.add(
            f"{name}/{words[1]}", tier, rate, far, near
        )

    def join_nvlink(self, number: int, node: Node, start: int, switches: int) -> None:
        span = self.fabric.nvlink_domain_nodes
        for offset, island in enumerate(node.nvlink.islands):
            label = number // span if span > 1 else switches + offset
            for gpu, rate in zip(island.gpus, island.rates, strict=True):
                self.switch_G[start + gpu] = label
                link = self.add_link(
                    f"node{number}/gpu{gpu}/nvlink",
                    "nvlink",
                    rate,
                    f"node{number}/gpu{gpu}",
                    f"nvswitch{label}",
                )
                self.nvlink_out_G[start + gpu], self.nvlink_in_G[start + gpu] = link

    def join_pairs(self, number: int, node: Node, start: int, host: "_Host") -> None:
        for link in node.nvlink.pairs:
            low, high = sorted(link.gpus)
            for a, b in ((low, high), (high, low)):
                name = f"node{number}/gpu{a}/nvlink/gpu{b}"
                self.local[start + a, start + b] = (
                    self.add(name, "nvlink", link.rate, f"node{number}/gpu{a}", f"node{number}/gpu{b}"),
                )
        switch_of = self.switch_G[start : start + len(node.gpus)].tolist()
        for a, switch in enumerate(switch_of):
            for b, other in enumerate(switch_of):
                if a == b or (start + a, start + b) in self.local or switch == other >= 0:
                    continue
                if not host.pcie:
                    raise BadInput(
                        f"{host.words}: GPUs {a} and {b} have no NVLink between them and no PCIe rate is given; add 'pcie' to the node"
                    )
                self.local[start + a, start + b] = (
                    host.pcie[a][0],
                    *host.way(host.place(a), host.place(b)),
                    host.pcie[b][1],
                )

    def join_network(self, number: int, node: Node, start: int, host: "_Host") -> None:
        for pool in node.nic_pools:
            first = node.nics[pool[0]]
            leaf, spine = self._leaf(number, first.rail)
            if leaf >= 0:
                self.leaf_nics.setdefault(leaf, []).extend(node.nics[nic].rate for nic in pool)
                self.spine_of_leaf[leaf] = spine
            place = host.nic_place(pool[0])
            name = f"node{number}/nic{pool[0]}" + (f"+{len(pool) - 1}" if len(pool) > 1 else "")
            rate = sum_rates(node.nics[nic].rate for nic in pool)
            out, back = self.add_link(name, "nic", rate, host.vertex(place), leaf_name(self.fabric, leaf))
            for gpu in first.gpus:
                here, (port_out, port_in) = host.place(gpu), host.port(gpu)
                self.egress[start + gpu] = (*port_out, *host.way(here, place), out)
                self.ingress[start + gpu] = (back, *host.way(place, here), *port_in)
                self.leaf_G[start + gpu], self.spine_G[start + gpu] = leaf, spine

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
        of_node, of_switch, of_both = (
            Counter(nodes),
            Counter(switches),
            Counter(zip(nodes, switches, strict=True)),
        )
        for gpu, (node, switch) in enumerate(zip(nodes, switches, strict=True)):
            mates = of_switch[switch] - of_both[node, switch] if switch >= 0 else 0
            if not self.egress[gpu] and len(nodes) - of_node[node] > mates:
                index = gpu - nodes.index(node)
                raise BadInput(
                    f"node {node}: GPU {index} has no NIC, so it cannot reach the other nodes; list the NIC it uses, or plan for one node"
                )

    def routes(self) -> Routes:
        fabric, leaf_links, spine_links = self.fabric, dict[int, Pair](), dict[int, Pair]()
        spines: dict[int, list[Rate]] = {}
        for leaf, rates in sorted(self.leaf_nics.items()):
            rate = _uplink(rates, fabric.oversubscription, fabric)
            spine = self.spine_of_leaf[leaf]
            spines.setdefault(spine, []).append(rate)
            name = leaf_name(fabric, leaf)
            leaf_links[leaf] = self.add_link(name, "leaf", rate, name, _spine_name(spine), ("up", "down"))
        for spine, rates in sorted(spines.items()):
            if spine >= 0:
                rate = _uplink(rates, fabric.pod_oversubscription, fabric)
                spine_links[spine] = self.add_link(
                    _spine_name(spine), "spine", rate, _spine_name(spine), "core", ("up", "down")
                )
        labels = (self.node_G, self.switch_G, self.leaf_G, self.spine_G, self.nvlink_out_G, self.nvlink_in_G)
        return Routes(
            tuple(self.resources),
            *labels,
            self.local,
            tuple(self.egress),
            tuple(self.ingress),
            leaf_links,
            spine_links,
            tuple(self.joints),
        )


class _Host:
    """PCIe, PCIe switches and sockets of one node: where things sit, and what lies between two places."""

    def __init__(self, name: str, node: Node, wiring: _Wiring) -> None:
        self.name, self.node = name, node
        self.words = name.replace("node", "node ") + (f" '{node.name}'" if node.name else "")
        self.pcie: list[Pair] = []
        self.uplinks: list[Pair] = []
        self.between: dict[tuple[int, int], int] = {}
        pcie = node.pcie
        if pcie is None:
            wiring.joints += [(f"{name}/gpu{gpu}", self.vertex((None, 0))) for gpu in range(len(node.gpus))]
            return
        self.switch_of_gpu = {gpu: index for index, switch in enumerate(pcie.switches) for gpu in switch.gpus}
        self.switch_of_nic = {nic: index for index, switch in enumerate(pcie.switches) for nic in switch.nics}
        for gpu, rate in enumerate(pcie.rates):
            self.pcie.append(
                wiring.add_link(
                    f"{name}/gpu{gpu}/pcie", "pcie", rate, f"{name}/gpu{gpu}", self.vertex(self.place(gpu))
                )
            )
        for index, switch in enumerate(pcie.switches):
            ends = self.vertex((index, 0)), self.vertex((None, pcie.sockets[switch.gpus[0]]))
            self.uplinks.append(
                wiring.add_link(f"{name}/pcie{index}", "host", switch.uplink, *ends, ("up", "down"))
            )
        sockets = sorted({*pcie.sockets, *(self.nic_place(nic)[1] for nic in range(len(node.nics)))})
        for a, b in ((a, b) for a in sockets for b in sockets if a != b):
            ends = self.vertex((None, a)), self.vertex((None, b))
            if pcie.inter_socket is None:
                wiring.joints.append(ends)
            else:
                self.between[a, b] = wiring.add(
                    f"{name}/socket{a}/socket{b}", "host", pcie.inter_socket, *ends
                )

    def place(self, gpu: int) -> Place:
        return (self.switch_of_gpu.get(gpu), self.node.pcie.sockets[gpu]) if self.node.pcie else (None, 0)

    def nic_place(self, nic: int) -> Place:
        if self.node.pcie is None:
            return None, 0
        if nic in self.switch_of_nic:
            switch = self.switch_of_nic[nic]
            return switch, self.node.pcie.sockets[self.node.pcie.switches[switch].gpus[0]]
        socket = self.node.nics[nic].socket
        return self.place(self.node.nics[nic].gpus[0]) if socket is None else (None, socket)

    def port(self, gpu: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return ((self.pcie[gpu][0],), (self.pcie[gpu][1],)) if self.pcie else ((), ())

    def way(self, here: Place, there: Place) -> tuple[int, ...]:
        (switch, socket), (other_switch, other_socket) = here, there
        if here == there:
            return ()
        up = (self.uplinks[switch][0],) if switch is not None else ()
        across = (self.between[socket, other_socket],) if socket != other_socket and self.between else ()
        down = (self.uplinks[other_switch][1],) if other_switch is not None else ()
        return up + across + down

    def vertex(self, place: Place) -> str:
        switch, socket = place
        return f"{self.name}/pcie{switch}" if switch is not None else f"{self.name}/socket{socket}"


def leaf_name(fabric: Fabric, leaf: int) -> str:
    """'leaf2', 'leaf2/rail5', or 'network' where the fabric has no leaves."""
    if leaf < 0:
        return "network"
    return f"leaf{leaf}" if fabric.kind == "leaf-spine" else f"leaf{leaf // RAILS}/rail{leaf % RAILS}"


def _spine_name(spine: int) -> str:
    return "spine" if spine < 0 else f"spine{spine}"


def _uplink(rates: list[Rate], oversubscription: float, fabric: Fabric) -> Rate:
    total = sum_rates(rates)
    return Rate(total.bytes_per_s / oversubscription, weakest((total.evidence, fabric.evidence)))
