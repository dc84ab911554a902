"""The diagnosis finds each fault of a machine, says what it costs, and is silent about a good one."""

from dataclasses import replace

import pytest

from planner.base import Evidence, Rate
from planner.model import find_model
from planner.planning import Fault, diagnose
from planner.problem import Workload
from planner.topology import Island, NvLink, Topology, read_topology

MIXTRAL = find_model("mixtral")
GOOD = read_topology("hgx-h100:4")


def found(topology: Topology, **workload: object) -> dict[str, Fault]:
    asked = Workload(**workload)  # type: ignore[arg-type]
    return {finding.rule: finding for finding in diagnose(topology, MIXTRAL, asked).faults}


def with_first_node(topology: Topology, **changes: object) -> Topology:
    first = replace(topology.nodes[0], **changes)  # type: ignore[arg-type]
    return replace(topology, nodes=(first, *topology.nodes[1:]))


def share(cost: str) -> float:
    """The percentage in 'step 12.3% longer, ...'."""
    return float(cost.split("%", maxsplit=1)[0].removeprefix("step "))


def test_a_good_machine_has_only_its_assumptions_named() -> None:
    """Four HGX hosts with a NIC for each GPU; nothing is wrong but that rates are taken from data sheets."""
    assert set(found(GOOD)) == {"assumed"}


def test_leaving_the_domain_over_a_slow_network_is_a_ratio() -> None:
    """Eight GPUs behind one 100G NIC and a model of small experts: communication is many times compute."""
    finding = {
        finding.rule: finding
        for finding in diagnose(read_topology("azure-ndv2:4"), find_model("olmoe"), Workload()).faults
    }["leaves-domain"]
    assert float(finding.cost.removeprefix("dispatch and combine ").split(" x ")[0]) > 2
    assert "--ep" in finding.remedy


def test_an_oversubscribed_leaf_costs_what_mending_it_would_save() -> None:
    """One host a leaf, 8 : 1: the cost is the ratio to the same machine at 1 : 1."""
    fabric = replace(GOOD.fabric, nodes_per_leaf=1, oversubscription=8.0)
    finding = found(replace(GOOD, fabric=fabric), tokens_per_rank=4096, phase="prefill")["oversubscribed"]
    assert share(finding.cost) > 40


def test_shared_nics_are_named_with_their_cost() -> None:
    """Two GPUs a NIC."""
    finding = found(read_topology("gcp-a3-high:4"))["shared-nics"]
    assert finding.what == "2 GPUs share 1 NIC of 25 GB/s"
    assert share(finding.cost) > 3


def test_a_host_with_a_slow_nic_is_named() -> None:
    """One NIC at a quarter of its rate slows every step of the whole group."""
    nics = GOOD.nodes[0].nics
    slow = replace(nics[3], rate=Rate(nics[3].rate.bytes_per_s / 4, nics[3].rate.evidence))
    finding = found(with_first_node(GOOD, nics=(*nics[:3], slow, *nics[4:])))["nics-differ"]
    assert finding.where == "node0"
    assert share(finding.cost) > 5


def test_half_rate_pcie_is_named() -> None:
    """A GPU whose slot negotiated half the lanes."""
    pcie = GOOD.nodes[0].pcie
    assert pcie is not None
    half = Rate(pcie.rates[5].bytes_per_s / 2, pcie.rates[5].evidence)
    finding = found(
        with_first_node(GOOD, pcie=replace(pcie, rates=(*pcie.rates[:5], half, *pcie.rates[6:])))
    )["slow-pcie"]
    assert "GPU 5" in finding.what


def test_a_gpu_that_lost_nvlink_is_named() -> None:
    """Seven of eight GPUs on the switch."""
    island = GOOD.nodes[0].nvlink.islands[0]
    fewer = NvLink("switch", (Island(tuple(gpu for gpu in range(8) if gpu != 2), island.rates[:7]),))
    finding = found(with_first_node(GOOD, nvlink=fewer))["lost-nvlink"]
    assert "GPU 2 has no NVLink while 7 others" in finding.what


def test_what_a_probe_saw_is_passed_on() -> None:
    """Faults in the topology file reach the person."""
    assert found(with_first_node(GOOD, faults=("mlx5_4 is down",)))["reported"].what == "mlx5_4 is down"


def test_measured_rates_are_not_called_assumed() -> None:
    """Once every rate is measured or read there is nothing left to measure."""
    measured = Evidence("measured", "all-to-all")

    def seen(rate: Rate) -> Rate:
        return Rate(rate.bytes_per_s, measured)

    node = GOOD.nodes[0]
    islands = tuple(Island(island.gpus, tuple(map(seen, island.rates))) for island in node.nvlink.islands)
    known = replace(
        node,
        pcie=None,
        nics=tuple(replace(nic, rate=seen(nic.rate)) for nic in node.nics),
        nvlink=NvLink("switch", islands),
    )
    machine = replace(GOOD, nodes=(known,) * 4, fabric=replace(GOOD.fabric, evidence=measured))
    assert "assumed" not in found(machine)


@pytest.mark.parametrize(
    "name", ["dgx-1v:2", "gb200-nvl72", "l40s-pcie", "azure-nc96ads-a100-v4", "aws-p5:2"]
)
def test_every_kind_of_machine_can_be_examined(name: str) -> None:
    """Meshes, racks, PCIe boxes, bridges and shared NICs: costs are finite, remedies are there."""
    for finding in diagnose(read_topology(name), MIXTRAL, Workload()).faults:
        assert finding.what
        assert finding.remedy
        assert "nan" not in finding.cost
        assert "inf" not in finding.cost
