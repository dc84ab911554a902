"""Groups: the same GPUs as several servers side by side, each an expert-parallel group of its own.

A group is whole nodes in rank order, or a part of one node. It is priced with the machine to itself: what
groups share, such as the uplink of a leaf, is each group's by the NICs that it has below it.
"""

from dataclasses import replace

from planner.base import BadInput, Rate
from planner.topology import Node, Topology

Slice = tuple[int, int, int]  # a node, and the first and last + 1 of its GPUs


def ep_sizes(topology: Topology) -> tuple[int, ...]:
    """The EP sizes that divide the machine into equal groups: parts of a node, or whole nodes; rising."""
    sizes = [len(node.gpus) for node in topology.nodes]
    parts = {size for size in range(1, min(sizes) + 1) if all(count % size == 0 for count in sizes)}
    whole = {sum(sizes[:count]) for count in range(1, len(sizes) + 1) if _even(sizes, count)}
    return tuple(sorted(parts | whole))


def groups_of(topology: Topology, ep: int) -> tuple[Topology, ...]:
    """The machines of the groups of `ep` GPUs, one of each kind: groups that are alike are one.

    BadInput where `ep` does not divide the machine.
    """
    if ep not in ep_sizes(topology):
        sizes = ", ".join(map(str, ep_sizes(topology)))
        raise BadInput(
            f"EP{ep}: {topology.name} of {topology.gpu_count} GPUs divides into equal groups of {sizes} GPUs"
        )
    looks = {node: _looks(node) for node in dict.fromkeys(topology.nodes)}
    kinds: dict[object, tuple[Slice, ...]] = {}
    for slices in _slices(topology, ep):
        kinds.setdefault(tuple((looks[topology.nodes[node]], *span) for node, *span in slices), slices)
    machines: dict[object, Topology] = {}
    for slices in kinds.values():
        machine = _machine(topology, slices)
        alone = len(machine.nodes) == 1
        machines.setdefault(tuple(_looks(node, alone=alone) for node in machine.nodes), machine)
    return tuple(machines.values())


def with_nics_at(topology: Topology, factor: float) -> Topology:
    """The machine with every NIC at this share of its rate, and so the uplinks of leaves."""
    changed = {node: _with_nics_at(node, factor) for node in dict.fromkeys(topology.nodes)}
    return replace(topology, nodes=tuple(changed[node] for node in topology.nodes))


def with_full_fabric(topology: Topology) -> Topology:
    """The machine with a fabric of 1:1, above which nothing is thinner than the NICs below it."""
    return replace(topology, fabric=replace(topology.fabric, oversubscription=1.0, pod_oversubscription=1.0))


def _even(sizes: list[int], count: int) -> bool:
    """Whether groups of `count` nodes are of one size each."""
    starts = range(0, len(sizes), count)
    return len(sizes) % count == 0 and len({sum(sizes[start : start + count]) for start in starts}) == 1


def _slices(topology: Topology, ep: int) -> list[tuple[Slice, ...]]:
    """The GPUs of each group, node by node."""
    groups: list[tuple[Slice, ...]] = []
    open_group: list[Slice] = []
    for number, node in enumerate(topology.nodes):
        count = len(node.gpus)
        if ep < count:
            groups += [((number, first, first + ep),) for first in range(0, count, ep)]
            continue
        open_group.append((number, 0, count))
        if sum(last for _, _, last in open_group) == ep:
            groups.append(tuple(open_group))
            open_group = []
    return groups


def _machine(topology: Topology, slices: tuple[Slice, ...]) -> Topology:
    nodes = []
    for number, first, last in slices:
        node = topology.nodes[number]
        nodes.append(node if last - first == len(node.gpus) else node.keep(range(first, last)))
    return replace(topology, nodes=tuple(nodes))


def _looks(node: Node, *, alone: bool = False) -> Node:
    """The node as a group sees it: no name, and on its own no rails, which lead to other nodes."""
    speeds = () if set(node.speeds) == {1.0} else node.speeds
    nics = (replace(nic, name="", rail=0 if alone else nic.rail) for nic in node.nics)
    return replace(node, name="", faults=(), nics=tuple(nics), speeds=speeds)


def _with_nics_at(node: Node, factor: float) -> Node:
    nics = (replace(nic, rate=Rate(nic.rate.bytes_per_s * factor, nic.rate.evidence)) for nic in node.nics)
    return replace(node, nics=tuple(nics))
