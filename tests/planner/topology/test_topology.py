"""Topology: labels in rank order, what is refused, selection, and plain data there and back."""

import dataclasses
import json
import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import Evidence, Rate
from planner.topology import Fabric, Nic, Node, NvLink, PairLink, Topology, read_topology, topology_from_dict
from tests.planner.machines import (
    BY_HAND,
    GPU,
    flat_pcie,
    machine,
    machines,
    own_nics,
    pcie_box,
    rate,
    switched,
    two_by_two,
)


def test_ranks_go_node_by_node() -> None:
    """Unequal nodes of 1 and 2 GPUs: node, index and rank of each."""
    nodes = (
        Node((GPU,), pcie=flat_pcie(1), nics=own_nics(1)),
        Node((GPU, GPU), switched([0, 1]), flat_pcie(2), own_nics(2)),
    )
    topology = Topology("unequal", nodes, Fabric("none", BY_HAND), "made up for tests")
    assert (topology.node_count, topology.gpu_count, topology.domain_count) == (2, 3, 2)
    assert topology.node_G.tolist() == [0, 1, 1]
    assert topology.index_G.tolist() == [0, 0, 1]
    assert [(gpu.rank, gpu.node, gpu.index, gpu.domain) for gpu in topology.gpus] == [
        (0, 0, 0, 0),
        (1, 1, 0, 1),
        (2, 1, 1, 1),
    ]


def test_capacities_are_those_of_the_resources() -> None:
    """capacity_R in the order of the resources; both are fixed."""
    topology = two_by_two()
    assert topology.capacity_R.tolist() == [resource.rate.bytes_per_s for resource in topology.resources]
    assert not topology.capacity_R.flags.writeable


def test_an_nvl72_rack_is_one_domain_of_72() -> None:
    """18 nodes, one domain; two racks are two."""
    assert read_topology("gb200-nvl72").domain_G.tolist() == [0] * 72
    assert read_topology("gb200-nvl72:36").domain_G.tolist() == [0] * 72 + [1] * 72


def test_a_mesh_is_one_domain_and_bridges_are_pairs() -> None:
    """Domains follow links, also through a third GPU; a GPU without NVLink is alone."""
    chain = NvLink(
        "mesh", pairs=(PairLink((2, 3), rate(1)), PairLink((0, 3), rate(1)), PairLink((1, 0), rate(1)))
    )
    assert machine(Node((GPU,) * 5, chain, flat_pcie(5)), 1).domain_G.tolist() == [0, 0, 0, 0, 1]
    assert read_topology("azure-nc96ads-a100-v4").domain_G.tolist() == [0, 0, 1, 1]
    assert pcie_box().domain_G.tolist() == [0, 1, 2, 3]


def test_islands_of_a_node_are_domains() -> None:
    """A switch machine with a GPU whose links are down: an island of three and one alone."""
    assert machine(Node((GPU,) * 4, switched([0, 1, 3]), flat_pcie(4))).domain_G.tolist() == [0, 0, 1, 0]


def test_quads_of_dgx1v_are_fully_linked() -> None:
    """Inside a quad every pair has NVLink; each GPU has one link to the other quad and six lanes in all."""
    topology = read_topology("dgx-1v")
    direct = {
        (i, j)
        for i in range(8)
        for j in range(8)
        if i != j and topology.resources[topology.route(i, j)[0]].tier == "nvlink"
    }
    assert all((i, j) in direct for quad in (range(4), range(4, 8)) for i in quad for j in quad if i != j)
    assert {(i, j) for i, j in direct if i < 4 <= j} == {(0, 4), (1, 5), (2, 6), (3, 7)}
    for i in range(8):
        assert sum(topology.capacity_R[topology.route(i, j)[0]] for a, j in direct if a == i) == 150e9


@given(machines())
def test_plain_data_reads_back_equal(topology: Topology) -> None:
    """to_dict, through JSON text, gives an equal topology with the same digest."""
    again = topology_from_dict(json.loads(json.dumps(topology.to_dict())))
    assert again == topology
    assert again.digest() == topology.digest()


@given(st.floats(1e-3, 1e18), st.floats(1e-3, 1e18))
def test_no_digit_of_a_rate_is_lost(gpu_rate: float, nic_rate: float) -> None:
    """Measured rates have many digits; the text of a file keeps them all."""
    nics = tuple(
        Nic(Rate(nic_rate * (gpu + 1), Evidence("measured", "run 1")), (gpu,), gpu, f"mlx5_{gpu}", socket=gpu)
        for gpu in range(2)
    )
    node = Node((GPU, GPU), switched([0, 1], gigabytes_per_s=gpu_rate), flat_pcie(2), nics, "host-a")
    topology = Topology("measured", (node, replace(node, name="host-b")), Fabric("none", BY_HAND), "probe")
    assert topology_from_dict(topology.to_dict()) == topology


def test_alike_nodes_are_one_entry_of_the_data() -> None:
    """A thousand nodes do not make a long file; names are kept."""
    data = two_by_two(nodes=1000).to_dict()
    assert [entry["count"] for entry in data["nodes"]] == [1000]
    node = two_by_two().nodes[0]
    named = Topology(
        "named", (replace(node, name="a"), replace(node, name="b")), Fabric("none", BY_HAND), "x"
    ).to_dict()
    assert [entry["names"] for entry in named["nodes"]] == [["a", "b"]]


def test_the_digest_follows_every_figure() -> None:
    """Another rate, evidence or name is another digest; the same values give the same."""
    base = two_by_two()
    changed = [
        two_by_two(nodes=3),
        replace(base, name="other"),
        machine(replace(base.nodes[0], nics=own_nics(2, 51)), 2),
    ]
    assert len({topology.digest() for topology in (base, *changed)}) == 4
    assert base.digest() == two_by_two().digest()


def test_a_topology_travels_to_another_process() -> None:
    """Solvers run in processes: a pickled topology is equal and routes the same."""
    topology = two_by_two("rail")
    again = pickle.loads(pickle.dumps(topology))
    assert again == topology
    assert again.route(0, 3) == topology.route(0, 3)


def test_values_are_frozen() -> None:
    """Nothing can be changed after the check."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        two_by_two().name = "other"  # type: ignore[misc]


def test_peak_rate_falls_back_to_the_wider_type() -> None:
    """Without fp8 a GPU computes in bf16, without that in fp16."""
    assert GPU.peak_flops_per_s("fp8") == 2e15
    assert replace(GPU, flops_per_s={"bf16": 3.0}).peak_flops_per_s("fp8") == 3.0
    assert replace(GPU, flops_per_s={"fp16": 2.0}).peak_flops_per_s("bf16") == 2.0
