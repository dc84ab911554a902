"""Routes and loads: hand-checked on small machines."""

import numpy as np
import pytest

from planner.base import BadInput
from planner.topology import Nic, Node, NvLink, PairLink, Pcie, PcieSwitch, Topology
from tests.planner.machines import (
    GPU,
    flat_pcie,
    machine,
    names,
    own_nics,
    pcie_box,
    rate,
    switched,
    two_by_two,
)


def load(topology: Topology, traffic: dict[tuple[int, int], float]) -> dict[str, float]:
    """Bytes on each loaded resource."""
    bytes_GG = np.zeros((topology.gpu_count, topology.gpu_count))
    for pair, size in traffic.items():
        bytes_GG[pair] = size
    bytes_R = topology.resource_bytes(bytes_GG)
    return {
        resource.name: float(size) for resource, size in zip(topology.resources, bytes_R, strict=True) if size
    }


def test_a_gpu_reaches_itself_at_no_cost() -> None:
    """The diagonal of the traffic matrix loads nothing."""
    topology = two_by_two()
    assert topology.route(1, 1) == ()
    assert load(topology, {(1, 1): 7.0}) == {}


def test_a_switch_costs_the_two_ports() -> None:
    """NVLink switch: out of the source, into the destination."""
    topology = two_by_two()
    assert names(topology, topology.route(0, 1)) == ["node0/gpu0/nvlink/out", "node0/gpu1/nvlink/in"]


def test_another_node_costs_pcie_and_nics() -> None:
    """Between nodes of a flat network: PCIe out, NIC out, NIC in, PCIe in."""
    topology = two_by_two()
    assert names(topology, topology.route(0, 3)) == [
        "node0/gpu0/pcie/out",
        "node0/nic0/out",
        "node1/nic1/in",
        "node1/gpu1/pcie/in",
    ]


def test_loads_of_a_small_matrix_by_hand() -> None:
    """Three flows on 2 x 2 GPUs: 0 -> 1 stays on NVLink, 0 -> 2 and 1 -> 2 meet at the NIC of GPU 2."""
    assert load(two_by_two(), {(0, 1): 5.0, (0, 2): 3.0, (1, 2): 4.0}) == {
        "node0/gpu0/nvlink/out": 5.0,
        "node0/gpu1/nvlink/in": 5.0,
        "node0/gpu0/pcie/out": 3.0,
        "node0/nic0/out": 3.0,
        "node0/gpu1/pcie/out": 4.0,
        "node0/nic1/out": 4.0,
        "node1/nic0/in": 7.0,
        "node1/gpu0/pcie/in": 7.0,
    }


def test_a_shared_leaf_costs_no_uplink() -> None:
    """Leaf-spine with both nodes on one leaf; with one node a leaf the uplinks are used."""
    together = two_by_two("leaf-spine", nodes_per_leaf=2)
    apart = two_by_two("leaf-spine", nodes_per_leaf=1)
    assert not any("leaf" in name for name in names(together, together.route(0, 2)))
    assert names(apart, apart.route(0, 2))[2:4] == ["leaf0/up", "leaf1/down"]


def test_an_oversubscribed_leaf_has_a_thinner_uplink() -> None:
    """Two NICs of 50 below an uplink oversubscribed 4 : 1 leave 25."""
    topology = two_by_two("leaf-spine", oversubscription=4.0)
    up = next(resource for resource in topology.resources if resource.name == "leaf0/up")
    assert up.rate.bytes_per_s == 25e9


def test_a_rail_stays_on_its_leaf_and_crossing_rails_does_not() -> None:
    """Same index: one leaf. Another index: up from one rail's leaf, down to the other's."""
    topology = two_by_two("rail", nodes_per_leaf=2)
    assert not any("leaf" in name for name in names(topology, topology.route(0, 2)))
    assert names(topology, topology.route(0, 3))[2:4] == ["leaf0/rail0/up", "leaf0/rail1/down"]


def test_pods_add_a_spine_uplink() -> None:
    """Four nodes, one a leaf, two a pod.

    Only traffic between pods climbs to the core, whose uplink is the leaves' over its ratio.
    """
    topology = two_by_two("leaf-spine", nodes=4, nodes_per_leaf=1, nodes_per_pod=2, pod_oversubscription=4.0)
    assert names(topology, topology.route(0, 2))[2:-2] == ["leaf0/up", "leaf1/down"]
    assert names(topology, topology.route(0, 4))[2:-2] == [
        "leaf0/up",
        "spine0/up",
        "spine1/down",
        "leaf2/down",
    ]
    assert next(r for r in topology.resources if r.name == "spine0/up").rate.bytes_per_s == 50e9


def test_pcie_switches_and_sockets() -> None:
    """Below one switch nothing but the ports.

    From the switch to the other socket its uplink and the link between sockets.
    """
    topology = pcie_box()
    assert names(topology, topology.route(0, 1)) == ["node0/gpu0/pcie/out", "node0/gpu1/pcie/in"]
    assert names(topology, topology.route(2, 3)) == ["node0/gpu2/pcie/out", "node0/gpu3/pcie/in"]
    assert names(topology, topology.route(0, 2)) == [
        "node0/gpu0/pcie/out",
        "node0/pcie0/up",
        "node0/socket0/socket1",
        "node0/gpu2/pcie/in",
    ]
    assert names(topology, topology.route(2, 0)) == [
        "node0/gpu2/pcie/out",
        "node0/socket1/socket0",
        "node0/pcie0/down",
        "node0/gpu0/pcie/in",
    ]


def test_two_switches_of_one_socket() -> None:
    """Up one PCIe switch and down the other, and no link between sockets."""
    pcie = Pcie((rate(30),) * 2, (0, 0), (PcieSwitch((0,), rate(25)), PcieSwitch((1,), rate(25))), rate(10))
    topology = machine(Node((GPU, GPU), pcie=pcie))
    assert names(topology, topology.route(0, 1)) == [
        "node0/gpu0/pcie/out",
        "node0/pcie0/up",
        "node0/pcie1/down",
        "node0/gpu1/pcie/in",
    ]


def test_a_nic_on_a_socket_is_reached_through_the_uplink() -> None:
    """The GPU hangs below a switch, its NIC straight on the other socket."""
    pcie = Pcie((rate(30),), (0,), (PcieSwitch((0,), rate(25)),), rate(10))
    topology = machine(Node((GPU,), pcie=pcie, nics=(Nic(rate(50), (0,), socket=1),)), 2)
    out = ["gpu0/pcie/out", "pcie0/up", "socket0/socket1", "nic0/out"]
    back = ["nic0/in", "socket1/socket0", "pcie0/down", "gpu0/pcie/in"]
    assert names(topology, topology.route(0, 1)) == [
        *(f"node0/{name}" for name in out),
        *(f"node1/{name}" for name in back),
    ]


def test_a_shared_nic_carries_the_sum() -> None:
    """Four GPUs share a NIC of 12; those of the other socket cross to it."""
    topology = pcie_box(nodes=2)
    loads = load(topology, {(0, 4): 1.0, (3, 5): 2.0})
    assert loads["node0/nic0/out"] == loads["node1/nic0/in"] == 3.0
    assert loads["node0/socket1/socket0"] == loads["node0/pcie0/down"] == 2.0


def test_nics_that_serve_the_same_gpu_are_one_resource() -> None:
    """Four NICs of 12.5 for a GPU are one of 50, named after them."""
    node = Node((GPU,), pcie=flat_pcie(1), nics=tuple(Nic(rate(12.5), (0,)) for _ in range(4)))
    nics = [resource for resource in machine(node, 2).resources if resource.tier == "nic"]
    assert [(nic.name, nic.rate.bytes_per_s) for nic in nics[:2]] == [
        ("node0/nic0+3/out", 50e9),
        ("node0/nic0+3/in", 50e9),
    ]


def test_a_bridge_pair_is_direct_and_others_take_pcie() -> None:
    """Bridges join 0-1 and 2-3; GPU 1 reaches GPU 2 over PCIe, never through GPU 0 or 3."""
    bridge = NvLink("bridge", (), (PairLink((0, 1), rate(300)), PairLink((3, 2), rate(300))))
    topology = machine(Node((GPU,) * 4, bridge, flat_pcie(4)))
    assert names(topology, topology.route(3, 2)) == ["node0/gpu3/nvlink/gpu2"]
    assert names(topology, topology.route(1, 2)) == ["node0/gpu1/pcie/out", "node0/gpu2/pcie/in"]


def test_an_nvlink_domain_of_nodes_never_touches_nics() -> None:
    """Two nodes in one domain: NVLink only, and no NIC is needed."""
    node = Node((GPU, GPU), switched([0, 1]))
    topology = machine(node, 2, nvlink_domain_nodes=2)
    assert names(topology, topology.route(0, 3)) == ["node0/gpu0/nvlink/out", "node1/gpu1/nvlink/in"]


def test_a_gpu_without_a_nic_is_refused_where_it_needs_one() -> None:
    """Two nodes need NICs; the message names node and GPU. One node does not."""
    node = Node((GPU, GPU), switched([0, 1]), nics=own_nics(1))
    assert machine(node).gpu_count == 2
    with pytest.raises(BadInput, match="node 0: GPU 1 has no NIC"):
        machine(node, 2)


def test_gpus_without_any_way_are_refused() -> None:
    """Neither NVLink nor PCIe between two GPUs of a node."""
    with pytest.raises(BadInput, match="GPUs 0 and 1 have no NVLink between them and no PCIe rate"):
        machine(Node((GPU, GPU)))
