"""What was stated of a link stays beside what was measured: in the value, in files, and as a comparison."""

from dataclasses import replace

import pytest

from planner.base import BadInput, Evidence, Rate, sum_rates
from planner.topology import (
    AllToAll,
    Fabric,
    against_stated,
    as_stated,
    kept_comparisons,
    read_topology,
    topology_from_dict,
    unstated,
    with_share,
)

LINE = Rate(50e9, Evidence("read", "ibstat"))
SEEN = Evidence("measured", "alltoall.log")
TWO = read_topology("hgx-h100:2")


def run(bytes_per_s: float, *, scope: str = "all", gpus: int = 16) -> AllToAll:
    """All GPUs exchange; each NIC carries so much. Eight of the other host's GPUs are reached over it."""
    slope = 8 / bytes_per_s
    sizes = (1e5, 1e6, 1e7)
    seconds = tuple(20e-6 + size * slope for size in sizes)
    return AllToAll("alltoall.log", scope, 2, (tuple(range(gpus)),), sizes, seconds, slope, 20e-6)


def test_a_measured_rate_keeps_what_was_stated() -> None:
    """Also when it is measured again."""
    once = LINE.measured_as(23e9, SEEN)
    assert (once.bytes_per_s, once.stated) == (23e9, LINE)
    assert once.measured_as(46e9, SEEN).stated == LINE


def test_what_was_never_stated_is_not_made_up() -> None:
    """A rate of an old file, measured over, has nothing beside it."""
    assert Rate(23e9, SEEN).measured_as(46e9, SEEN).stated is None


def test_a_stated_rate_is_no_measured_one() -> None:
    """Nor has it a stated rate of its own."""
    with pytest.raises(BadInput, match="itself a measured one"):
        Rate(1e9, SEEN, Rate(2e9, SEEN))


def test_rates_that_work_together_add_up_both_ways() -> None:
    """Stated 50 and 50, measured 20 and 30; one that was not measured counts as stated."""
    both = sum_rates([LINE.measured_as(20e9, SEEN), LINE.measured_as(30e9, SEEN), LINE])
    assert both.bytes_per_s == 100e9
    assert both.stated is not None
    assert both.stated.bytes_per_s == 150e9
    assert sum_rates([LINE, LINE]).stated is None
    assert sum_rates([LINE.measured_as(20e9, SEEN), Rate(9e9, SEEN)]).stated is None


def test_files_keep_both() -> None:
    """And an old file, without, reads as before."""
    machine = with_share(TWO, "nic", 0.46, "alltoall.log")
    data = machine.to_dict()
    assert data["nodes"][0]["nics"][0]["rate"]["stated"]["value"] == "50 GB/s"
    assert topology_from_dict(data) == machine
    del data["nodes"][0]["nics"][0]["rate"]["stated"]
    old = topology_from_dict(data)
    assert [rate.stated for rate in (nic.rate for nic in old.nodes[0].nics)] == [None] * 8
    assert {one.tier for one in unstated(old)} == {"nic"}
    assert "stated" not in str(TWO.to_dict()["nodes"])


def test_a_machine_goes_back_to_what_was_stated() -> None:
    """Every tier that was measured, or only one of them."""
    measured = with_share(with_share(TWO, "nic", 0.5, "a"), "nvlink", 0.7, "b")
    assert as_stated(measured).nodes == TWO.nodes
    assert as_stated(measured, ("nvlink",)) == with_share(TWO, "nic", 0.5, "a")
    assert as_stated(TWO) is TWO


def test_uplinks_that_carry_less_are_oversubscribed_by_more() -> None:
    """2:1 of which half is there are 4:1."""
    fabric = Fabric("leaf-spine", Evidence("read", "subnet"), 1, 2.0)
    found = with_share(replace(TWO, fabric=fabric), "leaf", 0.5, "alltoall.log").fabric
    assert (found.oversubscription, found.evidence.kind) == (4.0, "measured")


def test_kept_figures_are_compared_once_for_all_alike() -> None:
    """Sixteen NICs, one line."""
    (found,) = kept_comparisons(with_share(TWO, "nic", 0.46, "alltoall.log"))
    assert (found.tier, found.where, found.links) == ("nic", "node0/nic0", 16)
    assert found.share == pytest.approx(0.46)
    assert found.text == "23 of the stated 50 GB/s a NIC (46 %)"
    assert kept_comparisons(TWO) == ()


def test_an_exchange_is_held_against_the_links_it_waits_for() -> None:
    """Over two hosts the NICs: a measured rate of before does not move the comparison."""
    found = against_stated(TWO, run(23e9))
    assert found is not None
    assert (found.tier, found.links, found.peer_share) == ("nic", 16, 8)
    assert found.share == pytest.approx(0.46)
    again = against_stated(with_share(TWO, "nic", 0.1, "before"), run(23e9))
    assert again is not None
    assert again.share == pytest.approx(0.46)


def test_inside_a_host_it_waits_for_nvlink() -> None:
    """The first eight GPUs alone."""
    found = against_stated(TWO, run(360e9, gpus=8))
    assert found is not None
    assert (found.tier, found.links) == ("nvlink", 8)


def test_gpus_that_share_a_nic_and_nics_that_work_as_one_are_counted() -> None:
    """Two GPUs a NIC; four NICs a GPU."""
    shared = against_stated(read_topology("gcp-a3-high:2"), run(20e9))
    pooled = against_stated(read_topology("aws-p5:2"), run(40e9))
    assert shared is not None
    assert pooled is not None
    assert "a NIC that 2 GPUs share" in shared.text
    assert "of 4 NICs" in pooled.text


def test_seconds_of_a_message_size() -> None:
    """Between sizes; beyond the largest by the slope; below the smallest nothing is known."""
    sweep = run(8e9)
    assert sweep.seconds(1e4) is None
    assert sweep.seconds(5e5) == pytest.approx(20e-6 + 5e5 * 1e-9)
    assert sweep.seconds(1e9) == pytest.approx(1.0, rel=1e-4)
