"""Parts of a machine: the first nodes and GPUs, and what is left when some are lost."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from planner.topology import Nic, Node, NvLink, PairLink, Pcie, Topology
from tests.planner.machines import (
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
    """Random GPUs lost, of every node one at least left.

    The others reach each other over the same NVLink ports, PCIe lanes and NICs.
    """
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
    """Two GPUs on two sockets share a NIC beside the first.

    Without it the second still crosses the sockets to the network.
    """
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
