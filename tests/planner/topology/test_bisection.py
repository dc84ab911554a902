"""Bisection bandwidth: hand-checked cuts, and all halves against the reduced set on random machines."""

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings

from planner.topology import Bisection, Fabric, Node, Topology, bisections, read_topology
from planner.topology.halves import halves as balanced_halves
from tests.planner.machines import (
    BY_HAND,
    GPU,
    flat_pcie,
    machine,
    machines,
    own_nics,
    pcie_box,
    switched,
    two_by_two,
)


def tiers(topology: Topology) -> dict[str, Bisection]:
    return {cut.tier: cut for cut in bisections(topology)}


def test_a_switch_does_not_block() -> None:
    """Two of four GPUs at 400 send 800; the switch takes it all."""
    cut = tiers(machine(Node((GPU,) * 4, switched(range(4)))))["NVLink domain"]
    assert (cut.bytes_per_s, cut.needed_bytes_per_s, cut.oversubscription) == (800e9, 800e9, 1.0)
    assert cut.exact


def test_one_gpu_has_nothing_to_bisect() -> None:
    """No tier of a lone GPU has two halves."""
    assert bisections(machine(Node((GPU,)))) == ()


def test_a_pcie_box_is_cut_at_its_narrowest() -> None:
    """Between the sockets go 10; two GPUs could send 60."""
    cut = tiers(pcie_box())["node"]
    assert (cut.bytes_per_s, cut.needed_bytes_per_s) == (10e9, 60e9)
    assert cut.half in {(0, 1), (2, 3)}
    assert "NVLink domain" not in tiers(pcie_box())


def test_an_unknown_link_between_sockets_limits_nothing() -> None:
    """What is not known costs nothing: the PCIe switch's uplink of 25 is then the narrowest."""
    node = pcie_box().nodes[0]
    assert node.pcie is not None
    cut = tiers(machine(replace(node, pcie=replace(node.pcie, inter_socket=None))))["node"]
    assert cut.bytes_per_s == 25e9


def test_dgx1v_by_hand() -> None:
    """The quads are joined by 2 + 2 + 1 + 1 lanes of 25; a quad's GPUs could send 4 x 150."""
    cut = tiers(read_topology("dgx-1v"))["NVLink domain"]
    assert (cut.bytes_per_s, cut.needed_bytes_per_s, cut.halves) == (150e9, 600e9, 35)


def test_an_nvl72_rack_has_full_bisection() -> None:
    """36 GPUs at 900 on each side; one rack has no network tier, two are cut at their 72 NICs of 50."""
    one, two = tiers(read_topology("gb200-nvl72")), tiers(read_topology("gb200-nvl72:36"))
    assert one["NVLink domain"].bytes_per_s == 36 * 900e9
    assert "network" not in one
    assert (two["network"].units, two["network"].bytes_per_s) == (2, 72 * 50e9)


@pytest.mark.parametrize(("oversubscription", "expected"), [(1.0, 1.0), (2.0, 2.0), (4.0, 4.0)])
def test_an_oversubscribed_leaf_shows(oversubscription: float, expected: float) -> None:
    """Four nodes, two a leaf: the cut between the leaves has the uplink's ratio."""
    cut = tiers(two_by_two("leaf-spine", nodes=4, nodes_per_leaf=2, oversubscription=oversubscription))[
        "network"
    ]
    assert cut.oversubscription == expected
    assert cut.needed_bytes_per_s == 200e9


def test_a_leaf_shared_by_all_hides_its_uplink() -> None:
    """Nodes below one leaf never use the oversubscribed uplink."""
    assert (
        tiers(two_by_two("leaf-spine", nodes=4, nodes_per_leaf=4, oversubscription=8.0))[
            "network"
        ].oversubscription
        == 1.0
    )


def test_an_oversubscribed_pod_shows() -> None:
    """Two pods of two leaves: 200 below a spine of 200 / 4."""
    cut = tiers(
        two_by_two("leaf-spine", nodes=4, nodes_per_leaf=1, nodes_per_pod=2, pod_oversubscription=4.0)
    )["network"]
    assert (cut.bytes_per_s, cut.half) == (50e9, (0, 1))


def test_a_shared_nic_counts_once() -> None:
    """Four GPUs send through one NIC of 12."""
    cut = tiers(pcie_box(nodes=2))["network"]
    assert (cut.bytes_per_s, cut.needed_bytes_per_s) == (12e9, 12e9)


def test_names_do_not_make_nodes_different() -> None:
    """Nodes that differ in name alone are interchangeable."""
    node = two_by_two().nodes[0]
    named = Topology(
        "named", tuple(replace(node, name=f"host{n}") for n in range(6)), Fabric("none", BY_HAND), "x"
    )
    assert tiers(named)["network"].halves == 1


def test_a_large_fabric_says_that_it_was_sampled() -> None:
    """Thirty leaves: not all halves were tried, and the method says so.

    The cut between the leaves is still found.
    """
    cut = tiers(two_by_two("leaf-spine", nodes=30, nodes_per_leaf=1, oversubscription=2.0))["network"]
    assert not cut.exact
    assert "may be lower" in cut.method
    assert cut.oversubscription == 2.0


def test_interchangeable_units_lose_no_half() -> None:
    """Units of three kinds.

    The reduced halves cover every half up to exchange of alike units and of the two sides.
    """
    kinds = "aabbbc"
    halves, exact = balanced_halves(kinds)
    signatures = {
        frozenset((_signature(half, kinds), _signature(set(range(6)) - set(half), kinds))) for half in halves
    }
    everything = {
        frozenset((_signature(half, kinds), _signature(set(range(6)) - set(half), kinds)))
        for half in combinations(range(6), 3)
    }
    assert exact
    assert signatures == everything
    assert len(halves) == len(everything)


def _signature(half: "tuple[int, ...] | set[int]", kinds: str) -> str:
    return "".join(sorted(kinds[index] for index in half))


@settings(max_examples=30)
@given(machines())
def test_a_cut_is_never_above_what_the_ports_offer(topology: Topology) -> None:
    """Flow is limited by the ports of the weaker half; every tier has some capacity."""
    for cut in bisections(topology):
        assert 0 < cut.bytes_per_s <= cut.needed_bytes_per_s * (1 + 1e-9)
        assert len(cut.half) == cut.units // 2


@settings(max_examples=30)
@given(machines())
def test_the_same_machine_gives_the_same_cuts(topology: Topology) -> None:
    """No set order, no chance: two computations are equal."""
    again = Topology(topology.name, topology.nodes, topology.fabric, topology.source)
    assert bisections(again) == bisections(topology)


def test_needs_no_nics_on_one_node() -> None:
    """A node without NICs has its inner tiers."""
    assert set(tiers(machine(Node((GPU, GPU), switched([0, 1]), flat_pcie(2), own_nics(1))))) == {
        "NVLink domain",
        "node",
    }
