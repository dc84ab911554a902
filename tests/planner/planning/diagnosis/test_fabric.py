"""The fabric's verdict: what was measured beside what is stated, why, and what it costs a step."""

from dataclasses import replace

import pytest

from planner.base import Evidence, Rate
from planner.model import ModelSpec, find_model
from planner.planning import Diagnosis, diagnose, sentence
from planner.problem import Workload
from planner.topology import AllToAll, Fabric, Pcie, Topology, read_topology, with_share

DEEPSEEK = find_model("deepseek-v3")
FLAT = Fabric("none", Evidence("assumed", "not told"))
TWO = replace(read_topology("hgx-h100:2"), fabric=FLAT)


def run(gigabytes_per_s: float, gpus: int = 16, scope: str = "all", groups: int = 1) -> AllToAll:
    """Two hosts; a GPU's NIC carries so much."""
    members = tuple(tuple(range(first, gpus, groups)) for first in range(groups))
    over = len(members[0]) // 2
    slope = over / gigabytes_per_s / 1e9
    sizes = (1e4, 1e6, 1e8)
    seconds = tuple(50e-6 + size * slope for size in sizes)
    return AllToAll("log", scope, 2, members, sizes, seconds, slope, 50e-6)


def checked(topology: Topology, *runs: AllToAll, model: ModelSpec = DEEPSEEK) -> Diagnosis:
    return diagnose(topology, model, Workload(), runs)


def names(diagnosis: Diagnosis) -> list[str]:
    assert diagnosis.verdict.worst is not None
    return [cause.name for cause in diagnosis.verdict.worst.causes]


@pytest.mark.parametrize(
    ("measured", "first"),
    [
        (3.0, "GPUDirect or RDMA off?"),
        (7.0, "GPUDirect or RDMA off?"),
        (11.2, "uplinks 4:1?"),
        (15.5, "uplinks 3:1?"),
        (23.0, "uplinks 2:1?"),
        (25.2, "a PCIe Gen4 x16 link of GPU or NIC?"),
        (33.0, "flows that collide, or one slow NIC?"),
        (60.0, "stated rate too low, or traffic that never left the node?"),
    ],
)
def test_the_likeliest_cause_by_the_ratio(measured: float, first: str) -> None:
    """Of NICs stated at 50 GB/s, on hosts whose switches nobody told."""
    found = checked(TWO, run(measured))
    assert names(found)[0] == first
    assert len(names(found)) <= 3
    assert first in sentence(found.verdict)


def test_a_healthy_fabric_is_good_enough() -> None:
    """46.5 of 50: no cause, no finding of it, and a saving below what is worth saying."""
    found = checked(TWO, run(46.5))
    assert found.verdict.good
    assert names(found) == []
    assert sentence(found.verdict).startswith("Good enough: ")
    assert "46.5 of the stated 50 GB/s a NIC (93 %)" in sentence(found.verdict)
    assert not {fault.rule for fault in found.faults} & {"below-stated", "above-stated"}


def test_what_is_lost_is_what_the_stated_rate_would_save() -> None:
    """The figure in the sentence, the finding's seconds and those of two predictions agree."""
    found = checked(TWO, run(3.0))
    verdict = found.verdict
    plain, slow = checked(TWO).verdict, checked(with_share(TWO, "nic", 0.06, "log")).verdict
    assert verdict.whole.mended_seconds == pytest.approx(plain.whole.seconds)
    assert verdict.whole.seconds == pytest.approx(slow.whole.seconds)
    (fault,) = [one for one in found.faults if one.rule == "below-stated"]
    assert fault.cost_seconds == pytest.approx(verdict.whole.lost_seconds)
    assert sentence(verdict).startswith(f"The fabric costs {100 * verdict.whole.share:.0f} % of a decode")
    assert not verdict.good


def test_a_rate_kept_in_the_topology_is_judged_without_the_log() -> None:
    """As imported: 3 GB/s on 400 Gb/s NICs, and nothing of the step's own size."""
    found = checked(with_share(TWO, "nic", 0.06, "log"))
    assert names(found)[0] == "GPUDirect or RDMA off?"
    assert found.verdict.worst is not None
    assert found.verdict.worst.at_step is None


def test_nothing_measured_is_said() -> None:
    """Neither good nor bad, but for what is bad by design: two GPUs on a NIC, uplinks of 4:1."""
    found = checked(TWO)
    assert found.verdict.good is None
    assert sentence(found.verdict).startswith("Good enough if it keeps what is stated: ")
    shared = checked(read_topology("gcp-a3-high:4"))
    assert shared.verdict.good is False
    assert "2 GPUs share 1 NIC of 25 GB/s. Nothing was measured." in sentence(shared.verdict)
    tight = replace(TWO, fabric=Fabric("leaf-spine", Evidence("read", "subnet"), 1, 4.0))
    assert "uplinks carry 1/4" in sentence(checked(tight).verdict)


def test_a_design_that_costs_more_than_the_fault_comes_first() -> None:
    """Uplinks of 4:1 that carry what they can: the benchmark finds nothing, the machine is slow."""
    tight = replace(TWO, fabric=Fabric("leaf-spine", Evidence("read", "subnet"), 1, 4.0))
    found = checked(tight, run(11.5))
    assert found.verdict.worst is not None
    assert (found.verdict.worst.seen.tier, found.verdict.worst.causes) == ("leaf", ())
    assert "uplinks carry 1/4" in sentence(found.verdict)
    assert names(checked(tight, run(3.0)))[0] == "GPUDirect or RDMA off?"
    assert names(checked(tight, run(8.3)))[0] == "uplinks nearer 6:1 than 4:1?"


def test_measured_uplinks_are_judged_without_the_log() -> None:
    """As imported: 4:1 is stated, what they carry is kept beside it, and either has its own cost."""
    tight = replace(TWO, fabric=Fabric("leaf-spine", Evidence("read", "subnet"), 1, 4.0))
    found = checked(with_share(tight, "leaf", 0.66, "log"))
    assert names(found)[0] == "uplinks nearer 6.1:1 than 4:1?"
    costs = {fault.rule: fault.cost_seconds for fault in found.faults}
    assert costs["oversubscribed"] == pytest.approx(checked(tight).faults[1].cost_seconds)
    assert costs["below-stated"] == pytest.approx(
        found.verdict.whole.lost_seconds - (costs["oversubscribed"] or 0.0)
    )


def test_machines_of_every_kind_have_a_verdict() -> None:
    """A finite share, and a sentence."""
    for name in (
        "dgx-1v:2",
        "gb200-nvl72",
        "l40s-pcie",
        "azure-nc96ads-a100-v4:2",
        "aws-p5:2",
        "azure-ndv2:2",
    ):
        verdict = diagnose(read_topology(name), find_model("olmoe"), Workload()).verdict
        assert 0 <= verdict.whole.share < 1
        assert sentence(verdict)


def test_a_measured_rate_that_nothing_was_stated_of_cannot_be_compared() -> None:
    """A file of an older version."""
    node = TWO.nodes[0]
    bare = tuple(replace(nic, rate=Rate(3e9, Evidence("measured", "log"))) for nic in node.nics)
    found = checked(replace(TWO, nodes=(replace(node, nics=bare),) * 2))
    assert next(one.rule for one in found.faults) == "not-compared"


def test_a_leaf_for_all_hosts_has_no_uplinks_to_blame() -> None:
    """Half the rate, and the cables say that no byte leaves the leaf."""
    one_leaf = Fabric("leaf-spine", Evidence("imported", "subnet"), nodes_per_leaf=2)
    assert "uplinks 2:1?" not in names(checked(replace(TWO, fabric=one_leaf), run(23.0)))


def test_cables_that_were_read_make_uplinks_the_last_guess() -> None:
    """1:1 by ibnetdiscover."""
    told = Fabric("leaf-spine", Evidence("imported", "subnet"), nodes_per_leaf=1)
    assert names(checked(replace(TWO, fabric=told), run(23.0)))[0] != "uplinks 2:1?"


def test_uplinks_are_blamed_by_the_traffic_that_crosses_them() -> None:
    """Four hosts, two a leaf: two thirds of what leaves a host crosses, so 3:1 leaves half of the rate."""
    four = replace(read_topology("hgx-h100:4"), fabric=replace(FLAT, kind="leaf-spine", nodes_per_leaf=2))
    gpus = 32
    slope = 24 / 23e9
    sweep = AllToAll("log", "all", 4, (tuple(range(gpus)),), (1e6, 1e8), (1e6 * slope, 1e8 * slope), slope)
    assert names(checked(four, sweep))[0] == "uplinks 3:1?"


def test_rails_that_are_well_leave_the_pairs_across_them() -> None:
    """Rails alone at 47, all pairs at 20."""
    found = checked(TWO, run(20.0), run(47.0, scope="rail", groups=8))
    assert names(found)[0] == "pairs on different rails slow (rail-only, PXN off)?"


def test_one_of_several_nics_of_a_gpu() -> None:
    """Four NICs a GPU, a quarter of their rate."""
    found = checked(read_topology("aws-p5:2"), run(12.0))
    assert names(found)[0] == "one of the 4 NICs of each GPU carries all?"


def test_one_plane_of_a_fast_nic() -> None:
    """Half of 100 GB/s."""
    node = TWO.nodes[0]
    fast = tuple(replace(nic, rate=Rate(100e9, nic.rate.evidence)) for nic in node.nics)
    pcie = Pcie((Rate(128e9, Evidence("read", "sysfs")),) * 8, (0,) * 8)
    machine = replace(TWO, nodes=(replace(node, nics=fast, pcie=pcie),) * 2)
    assert names(checked(machine, run(47.0)))[0] == "one port or plane of each NIC?"


def test_a_fast_slot_that_was_read_is_not_the_first_guess() -> None:
    """25 of 50, with PCIe read at 64 GB/s."""
    node = TWO.nodes[0]
    pcie = Pcie((Rate(64e9, Evidence("read", "sysfs")),) * 8, (0,) * 8)
    found = checked(replace(TWO, nodes=(replace(node, pcie=pcie),) * 2), run(25.2))
    assert names(found)[0] == "uplinks 2:1?"


def test_small_messages_are_told_apart_from_the_link() -> None:
    """At the step's own size start-up takes its part; what is smaller than the log is said to be."""
    (reading,) = checked(TWO, run(46.5)).verdict.readings
    at = reading.at_step
    assert at is not None
    assert at.bytes_per_s is not None
    assert at.bytes_per_s < 46.5e9
    assert at.peer_bytes == pytest.approx(128 * 8 / 16 * (2 * 7168 + 16))  # tokens, top-k, GPUs; bf16, header
    late = replace(run(46.5), peer_bytes_S=(1e8,), seconds_S=(1.0,))
    (reading,) = checked(TWO, late).verdict.readings
    assert reading.at_step is not None
    assert reading.at_step.seconds is None


def test_slow_nvlink() -> None:
    """80 % is what NCCL reaches; a third of it is not."""

    def inside(rate: float) -> AllToAll:
        slope = 7 / rate / 1e9
        return AllToAll("log", "all", 1, (tuple(range(8)),), (1e6, 1e8), (1e6 * slope, 1e8 * slope), slope)

    one, model = read_topology("hgx-h100:1"), find_model("mixtral")
    assert names(checked(one, inside(340), model=model)) == []
    assert "NVLinks down" in names(checked(one, inside(150), model=model))[0]
    assert "NVLink not in use" in names(checked(one, inside(40), model=model))[0]
