"""A measurement replaces the rates of the links it waited for, and of no others.

Where that is not clear, it says why.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput, Evidence, GpuModel, Rate
from planner.topology import (
    Fabric,
    Island,
    Nic,
    Node,
    NvLink,
    PairLink,
    Pcie,
    PcieSwitch,
    Topology,
    topology_from_dict,
)
from probes.base.facts import MeasureFacts, Sample
from probes.measure.apply import apply_measurement

GPU = GpuModel("test-gpu", 80e9, 3e12, {"bf16": 1e15}, Evidence("assumed", "made up for tests"))


def rate(gigabytes_per_s: float, kind: str = "preset") -> Rate:
    return Rate(gigabytes_per_s * 1e9, Evidence(kind, "made up for tests"))


def node(name: str = "", gpus: int = 2, nic: float = 50.0) -> Node:
    """NVLink 400, PCIe 100, a NIC of 50 for each GPU."""
    nvlink = NvLink("switch", (Island(tuple(range(gpus)), (rate(400),) * gpus),))
    return Node(
        (GPU,) * gpus,
        nvlink,
        Pcie((rate(100),) * gpus, (0,) * gpus),
        tuple(Nic(rate(nic), (gpu,), gpu) for gpu in range(gpus)),
        name,
    )


def machine(*nodes: Node, fabric: Fabric | None = None) -> Topology:
    return Topology("lab", nodes, fabric or Fabric("none", Evidence("assumed", "flat")), "made up for tests")


def measurement(
    wire: float, ranks: int, hosts: str, scope: str = "all", groups: int = 1, **other: str
) -> MeasureFacts:
    """An all-to-all in which each rank sent `wire` GB/s in all; hosts as one letter a rank."""
    factor = (ranks / groups - 1) / (ranks / groups)
    rows = [(size, 10e-6 + size * factor / wire / 1e9) for size in (1 << 26, 1 << 28, 1 << 30)]
    samples = tuple(Sample(size, seconds, size / seconds, 0.0, 0.0, in_place=False) for size, seconds in rows)
    return MeasureFacts(
        "run.txt",
        "nccl-tests",
        "alltoall",
        ranks,
        tuple(hosts),
        scope=scope,
        groups=groups,
        samples=samples,
        **other,  # type: ignore[arg-type]
    )


def rates(topology: Topology, kind: str = "measured") -> dict[str, float]:
    """GB/s of the resources with that evidence."""
    found = {
        resource.name: resource.rate
        for resource in topology.resources
        if resource.name.endswith(("/out", "/gpu1", "/gpu0"))
    }
    return {
        name: round(each.bytes_per_s / 1e9, 3) for name, each in found.items() if each.evidence.kind == kind
    }


def test_one_host_measures_its_nvlink() -> None:
    """Both GPUs of the one node; NICs and PCIe keep what they had."""
    found = apply_measurement(machine(node()), measurement(300, 2, "aa"), "2026-01-15")
    assert rates(found) == {"node0/gpu0/nvlink/out": 300, "node0/gpu1/nvlink/out": 300}
    assert set(rates(found, "preset").values()) == {100, 50}
    evidence = found.nodes[0].nvlink.islands[0].rates[0].evidence
    assert (
        evidence.source
        == "nccl-tests alltoall, 2 ranks on 1 host: run.txt, 2026-01-15; fit over 3 sizes, mean error 0.0%"
    )


def test_two_hosts_measure_their_nics() -> None:
    """Of 60 GB/s that each of four ranks sends, two thirds leave the host."""
    found = apply_measurement(machine(node(), node()), measurement(60, 4, "aabb"))
    assert rates(found) == {f"node{number}/nic{nic}/out": 40 for number in (0, 1) for nic in (0, 1)}


def test_rails_measure_nics_alone() -> None:
    """All that a rank sends goes over its NIC."""
    found = apply_measurement(machine(node(), node()), measurement(45, 4, "aabb", "rail", 2))
    assert set(rates(found).values()) == {45}
    assert len(rates(found)) == 4


def test_domains_measure_nvlink_of_every_host() -> None:
    """Two at the same time."""
    found = apply_measurement(machine(node(), node()), measurement(333, 4, "aabb", "domain", 2))
    assert rates(found) == {f"node{number}/gpu{gpu}/nvlink/out": 333 for number in (0, 1) for gpu in (0, 1)}


def test_measurements_add_up() -> None:
    """Domain, then all: both tiers measured, in either order."""
    bare, domains, everyone = (
        machine(node(), node()),
        measurement(333, 4, "aabb", "domain", 2),
        measurement(60, 4, "aabb"),
    )
    first = apply_measurement(apply_measurement(bare, domains), everyone)
    second = apply_measurement(apply_measurement(bare, everyone), domains)
    assert first == second
    assert sorted(set(rates(first).values())) == [40, 333]


def test_a_rack_of_one_nvlink_domain_measures_nvlink() -> None:
    """Two hosts that share switches: nothing goes over NICs."""
    fabric = Fabric("none", Evidence("assumed", "rack"), nvlink_domain_nodes=2)
    found = apply_measurement(machine(node(), node(), fabric=fabric), measurement(350, 4, "aabb"))
    assert set(rates(found)) == {f"node{number}/gpu{gpu}/nvlink/out" for number in (0, 1) for gpu in (0, 1)}


def test_uplinks_that_were_waited_for_are_oversubscribed_by_what_they_carried() -> None:
    """4:1 of two NICs of 50 are 25 a leaf; of 12 that each rank sends 8 leave the host, 16 a leaf."""
    found = apply_measurement(machine(node(), node(), fabric=LEAVES), measurement(12, 4, "aabb"))
    assert found.fabric.oversubscription == pytest.approx(100 / 16)
    assert found.fabric.stated == LEAVES
    assert rates(found) == {}
    uplink = next(one.rate for one in found.resources if one.tier == "leaf")
    assert uplink.bytes_per_s == pytest.approx(16e9)
    assert (uplink.evidence.kind, uplink.as_stated.bytes_per_s) == ("measured", 25e9)
    assert topology_from_dict(found.to_dict()) == found
    again = apply_measurement(found, measurement(15, 4, "aabb"))
    assert again.fabric.oversubscription == pytest.approx(5.0)
    assert again.fabric.stated == LEAVES


def test_in_a_non_blocking_fabric_the_uplinks_follow_the_nics() -> None:
    """Two hosts on a leaf each: NIC and uplink are equally loaded, and the uplink is the NICs' sum."""
    fabric = Fabric("leaf-spine", Evidence("assumed", "non-blocking"))
    found = apply_measurement(machine(node(), node(), fabric=fabric), measurement(60, 4, "aabb"))
    assert rates(found) == {f"node{number}/nic{nic}/out": 40 for number in (0, 1) for nic in (0, 1)}
    assert {
        round(resource.rate.bytes_per_s / 1e9, 3) for resource in found.resources if resource.tier == "leaf"
    } == {80}


def test_a_shared_nic_gets_what_its_gpus_sent_together() -> None:
    """Two GPUs on two pooled cards of 25: 40 GB/s in all, 20 a card."""
    shared = replace(node(), nics=(Nic(rate(25), (0, 1), 0), Nic(rate(25), (0, 1), 0)))
    found = apply_measurement(machine(shared, shared), measurement(30, 4, "aabb"))
    assert rates(found) == {"node0/nic0+1/out": 40, "node1/nic0+1/out": 40}
    assert [round(nic.rate.bytes_per_s / 1e9, 3) for nic in found.nodes[0].nics] == [20, 20]


def test_a_bridged_pair_is_a_link() -> None:
    """Direct NVLink, both directions alike."""
    bridged = Node((GPU, GPU), NvLink("bridge", pairs=(PairLink((0, 1), rate(300)),)))
    assert rates(apply_measurement(machine(bridged), measurement(250, 2, "aa"))) == {
        "node0/gpu0/nvlink/gpu1": 250,
        "node0/gpu1/nvlink/gpu0": 250,
    }


def test_without_nvlink_pcie_is_measured() -> None:
    """Two GPUs straight on one socket."""
    plain = Node((GPU, GPU), pcie=Pcie((rate(60), rate(60)), (0, 0)))
    assert rates(apply_measurement(machine(plain), measurement(40, 2, "aa"))) == {
        "node0/gpu0/pcie/out": 40,
        "node0/gpu1/pcie/out": 40,
    }


def test_hosts_are_found_by_name() -> None:
    """Host c is the second node; the first keeps its rates."""
    found = apply_measurement(machine(node("b"), node("c")), measurement(300, 2, "cc"))
    assert set(rates(found)) == {"node1/gpu0/nvlink/out", "node1/gpu1/nvlink/out"}


LEAVES = Fabric("leaf-spine", Evidence("assumed", "tapered"), oversubscription=4.0)
SWITCHED = Node(
    (GPU, GPU),
    pcie=Pcie((rate(60), rate(60)), (0, 1), (PcieSwitch((0,), rate(10)), PcieSwitch((1,), rate(10)))),
)


ABOVE_THE_LINE = "measures 500 GB/s on node0/gpu0/nvlink/out, whose rate is 400 GB/s"


@pytest.mark.parametrize(
    ("topology", "facts", "says"),
    [
        (
            machine(node()),
            replace(measurement(300, 2, "aa"), collective="allreduce"),
            "is allreduce over 2 ranks; the rate of links is taken from an all-to-all",
        ),
        (machine(node()), measurement(300, 4, "aabb"), "ran over 4 ranks, the topology lab has 2 GPUs"),
        (machine(node(), node()), measurement(300, 2, ""), "does not say which hosts its 2 ranks were on"),
        (
            machine(node("b"), node("c")),
            measurement(300, 2, "aa"),
            "ran on host a, which the topology lab does not have",
        ),
        (
            machine(node("b"), node("c")),
            measurement(60, 4, "ccdd"),
            "ran on host d, which the topology lab does not have",
        ),
        (
            machine(node(gpus=3), node(gpus=3)),
            measurement(60, 4, "aabb"),
            "2 ranks on host a do not fit the topology lab: its node 0 has 3 GPUs",
        ),
        (machine(node(), node()), measurement(60, 4, "abab"), "its ranks go back and forth between hosts"),
        (
            machine(node(), node()),
            measurement(60, 4, "aabb", "all", 2),
            "ran in 2 groups that are neither domains nor rails",
        ),
        (
            machine(node(nic=95), node(nic=95)),
            measurement(60, 4, "aabb"),
            "could have waited for nic or for pcie, which are about as fast in lab",
        ),
        (machine(node()), measurement(500, 2, "aa"), f"{ABOVE_THE_LINE} .*not the machine that was measured"),
        (
            machine(SWITCHED),
            measurement(9, 2, "aa"),
            "waited for the links between PCIe switches and sockets",
        ),
        (machine(node()), replace(measurement(300, 2, "aa"), samples=()), "need at least 3 sizes, it has 0"),
    ],
)
def test_what_is_not_clear_changes_nothing(topology: Topology, facts: MeasureFacts, says: str) -> None:
    """One line with the reason."""
    with pytest.raises(BadInput, match=f"^run.txt: .*{says}" if not says.startswith("need") else says):
        apply_measurement(topology, facts)


@given(st.integers(2, 4), st.integers(1, 4), st.floats(1, 45))
def test_the_topology_then_predicts_what_was_measured(hosts: int, gpus: int, nic: float) -> None:
    """Routing the all-to-all over the new rates takes as long as it took."""
    ranks = hosts * gpus
    wire = nic * (ranks - 1) / (ranks - gpus)
    facts = measurement(wire, ranks, "".join(chr(97 + host) * gpus for host in range(hosts)))
    found = apply_measurement(machine(*[node(gpus=gpus)] * hosts), facts)
    bytes_GG = np.full((ranks, ranks), 1e9 / ranks)
    np.fill_diagonal(bytes_GG, 0)
    assert (found.resource_bytes(bytes_GG) / found.capacity_R).max() == pytest.approx(
        (ranks - 1) / ranks / wire, rel=1e-6
    )


def test_sizes_that_are_on_no_line_measure_nothing() -> None:
    """A noisy run must not become a rate."""
    facts = measurement(40, 4, "aabb")
    noisy = tuple(
        replace(sample, seconds=sample.seconds * (4 if index % 2 else 1))
        for index, sample in enumerate(facts.samples)
    )
    with pytest.raises(BadInput, match="quiet machine"):
        apply_measurement(machine(node("a"), node("b")), replace(facts, samples=noisy))
