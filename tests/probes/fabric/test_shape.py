"""The shape of a fabric out of its cables."""

from dataclasses import replace

import pytest

from probes.base.facts import FabricFacts, HostFacts, NicFact, PortFact
from probes.fabric.cables import Missing
from probes.fabric.shape import FabricShape, findings, name_hosts, shape_of
from probes.importers import ibnetdiscover
from tests.probes.ib_text import SmallFabric
from tests.probes.ib_text import ibnetdiscover as text_of


def facts_of(fabric: SmallFabric, links: list[tuple[str, int, str, int]] | None = None) -> FabricFacts:
    return ibnetdiscover.read(text_of(fabric, links).encode(), "net")[0]


def shape(fabric: SmallFabric, links: list[tuple[str, int, str, int]] | None = None) -> FabricShape:
    return shape_of(facts_of(fabric, links))


def test_rails_are_seen_over_several_groups() -> None:
    """NIC r of every host of a group on leaf r of that group: rails over groups, not one for each leaf."""
    found = shape(SmallFabric(groups=2, hosts=3, rails=4, spines=2))
    assert found.kind == "rail"
    assert found.rail_of_nic == (0, 1, 2, 3)
    assert found.rails[1] == ("leaf-0-1", "leaf-1-1")
    assert found.nodes_per_leaf == 3
    assert found.nics_per_host == 4
    assert [len(group) for group in found.groups] == [3, 3]
    assert found.spines == ("spine-0", "spine-1")


def test_all_nics_on_one_leaf_are_leaf_spine() -> None:
    """Top of rack: two NICs of a host on the same leaf."""
    fabric = SmallFabric(groups=2, hosts=2, rails=1, spines=1)
    second = [
        (f"{one.split()[0]} mlx5_1", port, leaf, far + 20)
        for one, port, leaf, far in fabric.links()
        if " " in one
    ]

    class Doubled(SmallFabric):
        def links(self) -> list[tuple[str, int, str, int]]:
            return [*super().links(), *second]

    found = shape(Doubled(groups=2, hosts=2, rails=1, spines=1))
    assert found.kind == "leaf-spine"
    assert found.nics_per_host == 2
    assert found.rails == ()


def test_one_switch_is_no_tier() -> None:
    """A single switch is one flat network."""
    found = shape(SmallFabric(groups=1, hosts=4, rails=1, spines=0))
    assert found.kind == "none"
    assert found.worst_oversubscription is None
    assert found.unknown == ()


def test_oversubscription_is_down_over_up() -> None:
    """4 hosts below, 2 spines x 1 cable above, all one rate: 2.0; with 2 cables each: 1.0."""
    assert shape(SmallFabric(hosts=4, spines=2, cables=1)).worst_oversubscription == 2.0
    assert shape(SmallFabric(hosts=4, spines=2, cables=2)).worst_oversubscription == 1.0


def test_host_without_a_name_counts_for_bandwidth_only() -> None:
    """An unnamed adapter loads its leaf, but is not one more host on it."""
    facts = ibnetdiscover.read(
        text_of(SmallFabric(hosts=4, rails=1)).replace('"node0003 mlx5_0"', '"MT4129 ConnectX7"').encode(),
        "net",
    )[0]
    found = shape_of(facts)
    assert found.hosts_by_leaf == {"leaf-0-0": 3, "leaf-1-0": 4}
    assert found.oversubscription["leaf-0-0"] == 2.0


def test_missing_cable_is_named() -> None:
    """One of two cables of a pair is gone: found 1, usual 2."""
    fabric = SmallFabric(cables=2)
    links = [link for link in fabric.links() if link[:2] != ("leaf-0-0", 100)]
    assert shape(fabric, links).missing == (Missing("leaf-0-0", "spine-0", 1, 2),)


def test_pair_without_any_cable_is_named_where_the_others_are_a_mesh() -> None:
    """7 of 8 pairs are cabled: the eighth is worth a word. In a fabric in two planes it is not."""
    fabric = SmallFabric(groups=2, rails=2, spines=2)
    links = [link for link in fabric.links() if not (link[0] == "leaf-1-1" and link[2] == "spine-1")]
    assert shape(fabric, links).uncabled == (("leaf-1-1", "spine-1"),)
    planes = [link for link in fabric.links() if " " in link[0] or link[0][-1] == link[2][-1]]
    assert shape(fabric, planes).uncabled == ()
    assert shape(fabric, planes).unreachable == ()  # a host reaches every other over one of its NICs


def test_findings_are_sentences() -> None:
    """Missing cables are for a person to look at; a sound fabric has none."""
    fabric = SmallFabric(cables=2)
    assert findings(shape(fabric)) == ()
    links = [link for link in fabric.links() if link[:2] != ("leaf-0-0", 100)]
    assert findings(shape(fabric, links)) == (
        (
            "1 pairs of switches have fewer cables than is usual between their tiers "
            "(leaf-0-0 to spine-0 has 1 of 2, ...): failed or missing cables"
        ),
    )


def test_swapped_cables_of_one_host_are_named() -> None:
    """Two NICs of one host on each other's leaf, among many that are right: still rails, and the host is
    named.
    """
    fabric = SmallFabric(groups=2, hosts=8, rails=2)
    links = [
        (one, port, {"leaf-0-0": "leaf-0-1", "leaf-0-1": "leaf-0-0"}[other], far + 50)
        if one.startswith("node0003")
        else (one, port, other, far)
        for one, port, other, far in fabric.links()
    ]
    found = shape(fabric, links)
    assert found.kind == "rail"
    assert found.rails == (("leaf-0-0", "leaf-1-0"), ("leaf-0-1", "leaf-1-1"))
    assert "cabled to the leaf of another rail: node0003" in found.warnings


def test_hosts_cabled_in_many_ways_have_no_shape() -> None:
    """Half the hosts on one leaf, half across two: said, not guessed."""
    ports = tuple(
        PortFact(f"h{n}", f"mlx5_{i}", "a" if n % 2 else "ab"[i]) for n in range(8) for i in range(2)
    )
    found = shape_of(FabricFacts("x", "ibnetdiscover", "imported", ports))
    assert found.kind is None
    assert any("cabled in 2 ways" in sentence for sentence in found.unknown)


def test_disconnected_hosts_are_unreachable() -> None:
    """Hosts outside the largest part."""
    ports = (PortFact("a", None, "l1"), PortFact("b", None, "l1"), PortFact("c", None, "l2"))
    assert shape_of(FabricFacts("x", "slurm-tree", "imported", ports)).unreachable == ("c",)


def test_tree_without_rates_says_what_it_cannot_tell() -> None:
    """Slurm: leaves and hosts, no NICs, no oversubscription."""
    ports = tuple(PortFact(f"n{n}", None, f"leaf{n // 2}") for n in range(4))
    found = shape_of(
        FabricFacts(
            "x", "slurm-tree", "imported", ports, uplinks={("leaf0", "root"): 0, ("leaf1", "root"): 0}
        )
    )
    assert (found.kind, found.nodes_per_leaf, found.nics_per_host, found.worst_oversubscription) == (
        "leaf-spine",
        2,
        None,
        None,
    )
    assert len(found.unknown) == 2


def test_leaf_with_another_number_of_hosts_is_named() -> None:
    """A cut file or a half-filled rack: said either way."""
    ports = tuple(PortFact(f"n{n}", None, f"leaf{n // 4}") for n in range(9))
    assert any(
        "most leaves have 4 hosts; others: leaf2 1" in warning
        for warning in shape_of(FabricFacts("x", "slurm-tree", "imported", ports)).warnings
    )


def test_no_ports_have_no_shape() -> None:
    """Blocks alone tell nothing of leaves."""
    found = shape_of(FabricFacts("x", "slurm-block", "imported", blocks={"b": ("n1",)}))
    assert (found.kind, found.leaves, found.hosts) == (None, (), ())


@pytest.mark.parametrize("host", [None, "node7"])
def test_hosts_are_named_by_guid(host: str | None) -> None:
    """A port whose GUID a host reports gets that host's and NIC's name.

    A report without a host name gives none.
    """
    facts = facts_of(SmallFabric())
    port = facts.ports[0]
    anonymous = replace(facts, ports=(replace(port, host=f"guid:{port.guid}", nic=None), *facts.ports[1:]))
    named = name_hosts(
        anonymous, [HostFacts("x", "ibstat", "imported", host, nics=(NicFact("mlx5_3", guid=port.guid),))]
    )
    found = next(p for p in named.ports if p.guid == port.guid)
    assert (found.host, found.nic) == (("node7", "mlx5_3") if host else (f"guid:{port.guid}", None))
