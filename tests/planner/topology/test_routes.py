"""Routes and loads: hand-checked on small machines, and against each other on random ones."""

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput
from planner.topology import Topology, read_topology
from planner.topology.topology import Nic, Node, NvLink, PairLink, Pcie, PcieSwitch
from tests.planner.machines import (
    GPU,
    flat_pcie,
    machine,
    machines,
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
    """Four nodes, one a leaf, two a pod: only traffic between pods climbs to the core, whose uplink is the leaves' over its ratio."""
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
    """Below one switch nothing but the ports; from the switch to the other socket its uplink and the link between sockets."""
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


@given(machines(), st.data())
def test_one_entry_of_traffic_loads_exactly_its_route(topology: Topology, data: st.DataObject) -> None:
    """`resource_bytes` of a one-hot matrix is the size on each resource of `route`, and nothing elsewhere."""
    i, j = (data.draw(st.integers(0, topology.gpu_count - 1)) for _ in range(2))
    bytes_GG = np.zeros((topology.gpu_count, topology.gpu_count))
    bytes_GG[i, j] = 0.1
    expected_R = np.zeros(len(topology.resources))
    expected_R[list(topology.route(i, j))] = 0.1
    np.testing.assert_array_equal(topology.resource_bytes(bytes_GG), expected_R)


@given(machines(), st.integers(0, 2**32 - 1))
def test_loads_add_up_over_pairs(topology: Topology, seed: int) -> None:
    """A full matrix loads each resource with the sum over the pairs whose route uses it, counted pair by pair."""
    count = topology.gpu_count
    bytes_GG = np.random.default_rng(seed).integers(0, 1000, (count, count)).astype(np.float64)
    expected_R = np.zeros(len(topology.resources))
    for i in range(count):
        for j in range(count):
            for index in topology.route(i, j):
                expected_R[index] += bytes_GG[i, j]
    np.testing.assert_array_equal(topology.resource_bytes(bytes_GG), expected_R)


@given(machines())
def test_a_route_is_a_path(topology: Topology) -> None:
    """Outside links of unknown rate, each resource begins where the one before it ended; the ends are the two GPUs."""
    free = {frozenset(joint) for joint in topology.routes.joints}
    for i in range(topology.gpu_count):
        for j in range(topology.gpu_count):
            hops = [topology.resources[index] for index in topology.route(i, j)]
            if i != j:
                assert hops[0].tail == f"node{topology.node_G[i]}/gpu{topology.index_G[i]}"
                assert hops[-1].head == f"node{topology.node_G[j]}/gpu{topology.index_G[j]}"
            for before, after in pairwise(hops):
                assert before.head == after.tail or frozenset((before.head, after.tail)) in free


def test_a_wrong_matrix_is_our_own_fault() -> None:
    """A matrix of another size is a bug, not bad input."""
    with pytest.raises(ValueError, match="4 x 4"):
        two_by_two().resource_bytes(np.zeros((2, 2)))


def test_a_thousand_gpus_are_quick() -> None:
    """128 nodes of 8 in a fabric with leaves: set-up below 3 s and a call below 0.05 s of processor time, the best of five (alone: 0.05 s and 0.01 s)."""
    begin = time.process_time()
    topology = read_topology("hgx-h100:128")
    topology.resource_bytes(np.ones((1024, 1024)))
    assert time.process_time() - begin < 3
    seconds = []
    for _ in range(5):
        begin = time.process_time()
        topology.resource_bytes(np.ones((1024, 1024)))
        seconds.append(time.process_time() - begin)
    assert min(seconds) < 0.05


@given(topology=machines(), seed=st.integers(0, 1000))
def test_prices_of_pairs_are_the_transpose_of_loads(topology: Topology, seed: int) -> None:
    """Bytes times the price of their route, over all pairs, are loads times the price of their resource, over all resources."""
    drawn = np.random.default_rng(seed)
    bytes_GG, price_R = (
        drawn.random((topology.gpu_count, topology.gpu_count)),
        drawn.random(len(topology.resources)),
    )
    price_GG = topology.routes.pair_prices(price_R)
    assert np.diag(price_GG).tolist() == [0.0] * topology.gpu_count
    assert (bytes_GG * price_GG).sum() == pytest.approx(topology.resource_bytes(bytes_GG) @ price_R)


@given(machines(), st.integers(0, 2**32 - 1))
def test_the_way_back_is_the_transpose(topology: Topology, seed: int) -> None:
    """Of any matrix, and of views that repeat one row, which need not be written out to be summed."""
    count = topology.gpu_count
    whole_GG = np.random.default_rng(seed).integers(0, 1000, (count, count)).astype(np.float64)
    for bytes_GG in (
        whole_GG,
        np.broadcast_to(whole_GG[:1], (count, count)),
        np.broadcast_to(whole_GG[:, :1], (count, count)),
    ):
        there_R, back_R = topology.there_and_back(bytes_GG)
        np.testing.assert_array_equal(there_R, topology.resource_bytes(bytes_GG.copy()))
        np.testing.assert_array_equal(back_R, topology.resource_bytes(bytes_GG.T.copy()))
