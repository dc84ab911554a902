"""Which resource is shaped where, and the way of packets, for each kind of link. No namespaces."""

from itertools import permutations

import pytest

from planner.topology import Node, Topology
from probes.emulation.flat import flat_cluster
from probes.emulation.links import setup_script
from probes.emulation.scale import ALL_BYTES_PER_S, as_shaped, scale_for
from probes.emulation.wiring import Wiring, wiring_of
from tests.probes.emulation.shapes import MODEL, SHAPES, SWITCH, cluster, own_nics


def way(wiring: Wiring, source: int, target: int) -> list[int]:
    """The resources that hold a packet, in the order of travel, as the filters send it."""
    held = [one.resource for one in wiring.sending if one.rank == source and target in one.peers]
    after: int | None = None
    while True:
        (hop,) = (
            hop
            for hop in wiring.hops
            if (hop.after, hop.target) == (after, target)
            and (hop.source == source or (hop.source is None and after is not None))
        )
        if hop.into is None:
            break
        held.append(hop.into)
        after = hop.into
    return held + [one.resource for one in wiring.receiving if one.rank == target and source in one.peers]


@pytest.mark.parametrize("topology", SHAPES.values(), ids=SHAPES)
def test_every_packet_is_held_by_its_route_and_nothing_else(topology: Topology) -> None:
    """For every pair, in the order of travel, by exactly one filter at each turn."""
    wiring = wiring_of(topology)
    for source, target in permutations(range(topology.gpu_count), 2):
        assert way(wiring, source, target) == list(topology.route(source, target))


@pytest.mark.parametrize("topology", SHAPES.values(), ids=SHAPES)
def test_every_resource_in_use_is_held_once(topology: Topology) -> None:
    """At one rank's link or in one pipe: held twice, it would carry half of what is shared."""
    wiring = wiring_of(topology)
    held = [one.resource for one in (*wiring.sending, *wiring.receiving)] + list(wiring.pipes)
    used = {one for pair in permutations(range(topology.gpu_count), 2) for one in topology.route(*pair)}
    assert sorted(held) == sorted(used)


@pytest.mark.parametrize(
    ("shape", "tiers"),
    [
        ("switch", set()),
        ("mesh", set()),
        ("domain of two nodes", set()),
        ("shared NIC", {"nic"}),
        ("NIC pool", {"nic"}),
        ("leaves and spines", {"leaf", "spine"}),
        ("rails", {"leaf"}),
        ("PCIe", {"nic", "host"}),
    ],
)
def test_only_what_ranks_share_is_a_pipe(shape: str, tiers: set[str]) -> None:
    """A rank's own links are held where it sends and is handed, so that TCP feels them."""
    topology = SHAPES[shape]
    assert {topology.resources[pipe].tier for pipe in wiring_of(topology).pipes} == tiers


def test_a_resource_that_no_pair_uses_is_not_made() -> None:
    """NICs of a single host."""
    topology = flat_cluster(1, 2, 4e7, 1e7)
    wiring = wiring_of(topology)
    shaped = {one.resource for one in (*wiring.sending, *wiring.receiving)}
    assert {topology.resources[resource].tier for resource in shaped} == {"nvlink"}


def test_the_script_holds_no_text_from_outside() -> None:
    """Names and sources of a topology file never reach a shell."""
    flat = cluster(2, 2, nvlink=SWITCH, nics=own_nics(2))
    node = Node((MODEL,) * 2, SWITCH, None, own_nics(2), "`id`")
    evil = Topology("$(touch /tmp/x)", (node, node), flat.fabric, ";id")
    assert setup_script(evil) == setup_script(flat)


def test_rates_are_divided_and_say_so() -> None:
    """The emulated cluster is what was shaped: measured, with what it is a share of."""
    shaped = as_shaped(SHAPES["leaves and spines"], 4.0)
    assert {one.rate.evidence.kind for one in shaped.resources} == {"measured"}
    assert shaped.capacity_R.tolist() == (SHAPES["leaves and spines"].capacity_R / 4).tolist()
    assert shaped.nodes[0].nics[0].rate.evidence.source == "shaped by tc, 1/4 of: made up for tests"
    assert [node.name for node in shaped.nodes] == ["host0", "host1", "host2", "host3"]


def test_the_scale_brings_what_all_ranks_send_to_what_a_small_machine_moves() -> None:
    """One number for all rates; small rates stay as they are."""
    large = flat_cluster(2, 8, 450e9, 50e9)
    shaped = as_shaped(large, scale_for(large))
    assert sum(one.rate.bytes_per_s for one in shaped.resources if one.name.endswith("out")) == pytest.approx(
        ALL_BYTES_PER_S
    )
    assert scale_for(flat_cluster(2, 2, 20e6, 5e6)) == 1.0
