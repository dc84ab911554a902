"""Topology: labels in rank order, what is refused, selection, and plain data there and back."""

import dataclasses
import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from planner.topology import Topology, read_topology, topology_from_dict
from planner.topology.topology import (
    Evidence,
    Fabric,
    GpuModel,
    Island,
    Nic,
    Node,
    NvLink,
    PairLink,
    Pcie,
    PcieSwitch,
    Rate,
)
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


def test_select_takes_the_first_of_each_and_keeps_evidence() -> None:
    """Nodes, GPUs, links, switches and NICs are cut; every rate that stays keeps what it rests on."""
    whole = machine(
        Node(
            (GPU,) * 4,
            switched([0, 1], [2, 3]),
            replace(pcie_box().nodes[0].pcie, inter_socket=rate(10, "read")),  # type: ignore[type-var]
            own_nics(4, 50),
        ),
        3,
    )
    part = whole.select(2, 3)
    assert (part.node_count, part.gpu_count) == (2, 6)
    node = part.nodes[0]
    assert [island.gpus for island in node.nvlink.islands] == [(0, 1), (2,)]
    assert [nic.gpus for nic in node.nics] == [(0,), (1,), (2,)]
    assert node.pcie is not None
    assert node.pcie.inter_socket == rate(10, "read")
    assert {resource.name: resource.rate for resource in part.resources}.items() <= {
        resource.name: resource.rate for resource in whole.resources
    }.items()


def test_select_keeps_a_shared_nic_for_those_who_stay() -> None:
    """One of two GPUs that share a NIC keeps all of it; a mesh without a pair left has no NVLink."""
    node = Node(
        (GPU, GPU), NvLink("mesh", pairs=(PairLink((0, 1), rate(9)),)), flat_pcie(2), (Nic(rate(5), (0, 1)),)
    )
    part = machine(node, 2).select(2, 1).nodes[0]
    assert part.nics[0].gpus == (0,)
    assert part.nvlink == NvLink()


@settings(max_examples=60)
@given(topology=machines(), data=st.data())
def test_what_is_left_of_a_machine_keeps_its_links(topology: Topology, data: st.DataObject) -> None:
    """Random GPUs lost, of every node one at least left: the others reach each other over the same NVLink ports, PCIe lanes and NICs."""
    ranks = [[gpu.rank for gpu in topology.gpus if gpu.node == node] for node in range(topology.node_count)]
    stay = sorted(
        rank
        for mates in ranks
        for rank in data.draw(st.lists(st.sampled_from(mates), min_size=1, unique=True))
    )
    if topology.fabric.nvlink_domain_nodes > 1:  # a domain needs a GPU of every node
        stay = sorted(
            {
                *stay,
                *(
                    mates[node.nvlink.islands[0].gpus[0]]
                    for mates, node in zip(ranks, topology.nodes, strict=True)
                ),
            }
        )
    left = topology.without(set(range(topology.gpu_count)) - set(stay))
    assert [gpu.model for gpu in left.gpus] == [topology.gpus[rank].model for rank in stay]

    def links(machine: Topology, i: int, j: int) -> list[tuple[str, float]]:
        path = (machine.resources[index] for index in machine.route(i, j))
        return [
            (resource.tier, resource.rate.bytes_per_s)
            for resource in path
            if resource.tier in ("nvlink", "pcie", "nic")
        ]

    for i, old_i in enumerate(stay):
        for j, old_j in enumerate(stay):
            assert links(left, i, j) == links(topology, old_i, old_j)


def test_a_lost_node_is_gone() -> None:
    """The nodes after it close up."""
    left = two_by_two(nodes=3).without([2, 3])
    assert (left.node_count, left.node_G.tolist()) == (2, [0, 0, 1, 1])


def test_a_nic_stays_on_its_socket_when_the_gpu_beside_it_is_lost() -> None:
    """Two GPUs on two sockets share a NIC beside the first; without it the second still crosses the sockets to the network."""
    node = Node((GPU, GPU), pcie=Pcie((rate(30),) * 2, (0, 1), (), rate(10)), nics=(Nic(rate(12), (0, 1)),))
    left = machine(node, 2).without([0])
    assert [left.resources[index].tier for index in left.route(0, 1)] == [
        "pcie",
        "host",
        "nic",
        "nic",
        "pcie",
    ]


@pytest.mark.parametrize(("nodes", "gpus"), [(0, None), (3, None), (1, 0), (1, 3)])
def test_select_refuses_what_is_not_there(nodes: int, gpus: int | None) -> None:
    """Counts outside the machine are bad input."""
    with pytest.raises(BadInput, match="cannot take"):
        two_by_two().select(nodes, gpus)


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


def test_more_gpus_than_we_plan_for() -> None:
    """65,537 GPUs are refused with the limit in the message."""
    with pytest.raises(BadInput, match="65,536"):
        machine(Node((GPU,)), 65_537)


def test_a_domain_of_nodes_needs_switches() -> None:
    """nvlink_domain_nodes without NVLink switches is a contradiction."""
    with pytest.raises(BadInput, match="NVLink domain of 2 nodes"):
        machine(Node((GPU,), nics=own_nics(1)), 2, nvlink_domain_nodes=2)


def test_one_name_for_two_gpu_models_is_refused() -> None:
    """A name means one set of figures."""
    other = replace(GPU, memory_bytes=1.0)
    with pytest.raises(BadInput, match="two sets of figures"):
        machine(Node((GPU, other), switched([0, 1])))


def test_peak_rate_falls_back_to_the_wider_type() -> None:
    """Without fp8 a GPU computes in bf16, without that in fp16."""
    assert GPU.peak_flops_per_s("fp8") == 2e15
    assert replace(GPU, flops_per_s={"bf16": 3.0}).peak_flops_per_s("fp8") == 3.0
    assert replace(GPU, flops_per_s={"fp16": 2.0}).peak_flops_per_s("bf16") == 2.0


BAD_NODES: dict[str, tuple[dict[str, Any], str]] = {
    "island twice": (
        {"nvlink": NvLink("switch", (Island((0, 0), (rate(1),) * 2),))},
        "GPU 0 is listed twice",
    ),
    "island of a stranger": ({"nvlink": switched([0, 2])}, "no GPU 2"),
    "island rates": ({"nvlink": NvLink("switch", (Island((0, 1), (rate(1),)),))}, "has 1 rates"),
    "empty island": ({"nvlink": NvLink("switch", (Island((), ()),))}, "lists no GPU"),
    "switch without islands": ({"nvlink": NvLink("switch")}, "goes with islands"),
    "unknown kind": ({"nvlink": NvLink("ring")}, "not one of none, switch, mesh, bridge"),
    "pair twice": (
        {"nvlink": NvLink("mesh", pairs=(PairLink((0, 1), rate(1)), PairLink((1, 0), rate(1))))},
        "listed twice under NVLink",
    ),
    "pair with itself": (
        {"nvlink": NvLink("mesh", pairs=(PairLink((1, 1), rate(1)),))},
        "GPU 1 is listed twice",
    ),
    "pcie rates": ({"pcie": flat_pcie(3)}, "2 GPUs need 2 PCIe rates"),
    "switch over sockets": (
        {"pcie": Pcie((rate(1),) * 2, (0, 1), (PcieSwitch((0, 1), rate(1)),))},
        "spans several sockets",
    ),
    "switch of no nic": (
        {"pcie": Pcie((rate(1),) * 2, (0, 0), (PcieSwitch((0,), rate(1), (4,)),))},
        "no NIC 4",
    ),
    "negative socket": ({"pcie": Pcie((rate(1),) * 2, (0, -1))}, "socket -1"),
    "nic of nobody": ({"nics": (Nic(rate(1), ()),)}, "lists no GPU"),
    "nic in two pools": (
        {"nics": (Nic(rate(1), (0,)), Nic(rate(1), (0, 1)))},
        "GPU 0 uses NICs that serve different GPUs",
    ),
    "pool on two rails": ({"nics": (Nic(rate(1), (0,), 0), Nic(rate(1), (0,), 1))}, "several rails"),
    "negative rail": ({"nics": (Nic(rate(1), (0,), -1),)}, "rail -1"),
    "too many nics": ({"nics": (Nic(rate(1), (0,)),) * 257}, "257 NICs"),
    "no gpus": ({"gpus": ()}, "0 GPUs"),
}


@pytest.mark.parametrize("case", BAD_NODES)
def test_contradictions_in_a_node_are_refused(case: str) -> None:
    """Each contradiction has its own line."""
    changes, message = BAD_NODES[case]
    with pytest.raises(BadInput, match=message):
        Node(**{"gpus": (GPU, GPU), **changes})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rate(0), "cannot be used"),
        (lambda: rate(float("nan")), "cannot be used"),
        (lambda: rate(float("inf")), "cannot be used"),
        (lambda: Evidence("guessed", "x"), "not one of measured"),
        (lambda: Evidence("preset", " "), "names no source"),
        (lambda: GpuModel("g", 1.0, -1.0, {"bf16": 1.0}, BY_HAND), "memory_bytes_per_s is -1.0"),
        (lambda: GpuModel("g", 1.0, 1.0, {}, BY_HAND), "neither a bf16 nor an fp16"),
        (lambda: Fabric("ring", BY_HAND), "fabric kind 'ring'"),
        (lambda: Fabric("rail", BY_HAND, 0), "nodes_per_leaf 0"),
        (lambda: Fabric("rail", BY_HAND, 2, 0.5), "oversubscription is 0.5"),
        (lambda: Fabric("rail", BY_HAND, 2, nodes_per_pod=3), "multiple of nodes_per_leaf"),
        (lambda: Topology("empty", (), Fabric("none", BY_HAND), "x"), "has no nodes"),
    ],
)
def test_figures_that_cannot_be_are_refused(make: Any, message: str) -> None:
    """Zero, NaN, negative, unknown words: one line each."""
    with pytest.raises(BadInput, match=message):
        make()
