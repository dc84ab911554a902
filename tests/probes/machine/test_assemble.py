"""From facts of one host to one machine: merging sources, what is asked for, what each rate rests on."""

import json
from dataclasses import replace
from itertools import combinations

import pytest

from planner.base import BadInput
from planner.topology import topology_from_dict
from probes.base.facts import MeasureFacts, NicFact, Sample
from probes.importers.registry import read_facts, read_file
from probes.machine.assemble import assemble
from probes.machine.hints import Hints
from tests.places import SHARED
from tests.probes.machine.told import H100, HINTS, matrix, named, ports, said, topology

RECORDINGS = SHARED / "data/topology"


class TestOneHost:
    def test_counts_domains_and_nearest_nics(self) -> None:
        """The names are those of the matrix, also where another source names the devices."""
        found = assemble([matrix(), ports()])
        assert (found.gpus, found.nics, found.nvlink_domains) == (8, 8, (tuple(range(8)),))
        assert found.affinity == {gpu: (f"NIC{gpu}",) for gpu in range(8)}

    def test_sources_complete_each_other(self) -> None:
        """Matrix, list and ibstat: models, links, and rates by device name, not by order."""
        slow = replace(
            ports(),
            nics=tuple(
                replace(nic, rate_bytes_per_s=25e9) if nic.name == "mlx5_1" else nic for nic in ports().nics
            ),
        )
        found = assemble([matrix(), named(), slow])
        (node,) = topology(found).nodes
        assert [nic.rate.bytes_per_s for nic in node.nics] == [50e9, 25e9] + [50e9] * 6
        assert node.gpus[0].name == "H100-SXM-80GB"
        assert "taken as one host" in said(found)

    def test_every_rate_names_what_it_rests_on(self) -> None:
        """Links counted in the matrix at the rate of a data sheet are 'preset', the NIC is 'imported', the
        stated one 'assumed'.
        """
        (node,) = topology(assemble([matrix(), named(), ports()])).nodes
        assert node.nvlink.islands[0].rates[0].bytes_per_s == 450e9
        assert (node.nvlink.islands[0].rates[0].evidence.kind, node.nics[0].rate.evidence.kind) == (
            "preset",
            "imported",
        )
        assert "topo.txt" in node.nvlink.islands[0].rates[0].evidence.source
        (hinted,) = topology(assemble([matrix()], HINTS)).nodes
        assert hinted.nics[0].rate.evidence.kind == "assumed"

    def test_read_link_rate_is_payload_and_keeps_its_evidence(self) -> None:
        """26.562 GB/s is the signalling rate; NVML's word is better than a data sheet."""
        read = replace(
            named(),
            evidence="read",
            source="NVML",
            gpus=tuple(replace(gpu, nvlinks=18, nvlink_bytes_per_s=26.562e9) for gpu in named().gpus),
        )
        (node,) = topology(assemble([matrix(), read], HINTS)).nodes
        rate = node.nvlink.islands[0].rates[0]
        assert (rate.bytes_per_s, rate.evidence.kind) == (450e9, "imported")

    def test_missing_model_is_asked_for(self) -> None:
        """No topology, and the flag that gives it; the counts stand."""
        found = assemble([matrix(), ports()])
        assert found.topology is None
        assert "--gpu H100-SXM" in said(found)
        assert found.gpus == 8

    def test_missing_nic_rate_is_asked_for(self) -> None:
        """No rate is invented for a NIC."""
        found = assemble([matrix(), named()])
        assert found.topology is None
        assert "--nic 400G" in said(found)

    def test_down_and_storage_nics_are_listed_not_planned(self) -> None:
        """The count is of all NICs; the nearest NIC of a GPU is one that is up."""
        found = assemble([matrix(), named(), ports(down=(3,))])
        (node,) = topology(found).nodes
        assert found.nics == 8
        assert "NIC3" not in found.affinity[3]
        assert all(nic.name != "mlx5_3" for nic in node.nics)
        assert "down, virtual or not of the fabric: NIC3" in said(found)

    def test_nic_that_is_near_no_gpu_is_not_planned(self) -> None:
        """A storage adapter is across sockets from every GPU that has one of its own."""
        host = matrix()
        storage = replace(
            host,
            nics=(*host.nics, NicFact("NIC8")),
            nic_paths={**host.nic_paths, **{(gpu, 8): "SYS" for gpu in range(8)}},
        )
        found = assemble([storage], HINTS)
        assert found.nics == 9
        assert len(topology(found).nodes[0].nics) == 8
        assert "nearest of no GPU" in said(found)

    def test_unmatched_devices_with_one_rate_are_used_and_said(self) -> None:
        """Without the legend nobody knows which NIC is which; where all run alike it does not matter."""
        found = assemble([matrix(legend=False), named(), ports()])
        assert topology(found).nodes[0].nics[0].rate.bytes_per_s == 50e9
        assert "same rate" in said(found)
        mixed = replace(ports(), nics=(*ports().nics[:-1], NicFact("mlx5_7", rate_bytes_per_s=25e9)))
        refused = assemble([matrix(legend=False), named(), mixed])
        assert refused.topology is None
        assert refused.nics == 8
        assert "legend" in said(refused)

    def test_conflicts_are_told_with_both_values(self) -> None:
        """Two rates of one NIC: what was read from the machine counts, both are printed."""
        live = replace(ports(rate=25e9), evidence="read", kind="sysfs", source="/sys")
        found = assemble([matrix(), named(), ports(), live])
        assert topology(found).nodes[0].nics[0].rate.bytes_per_s == 25e9
        assert "25 GB/s in /sys and 50 GB/s in ibstat.txt" in said(found)

    def test_read_model_wins_over_the_hint(self) -> None:
        """The driver's name is evidence, a flag is not."""
        found = assemble([matrix(), named(), ports()], Hints(gpu="H200"))
        assert topology(found).nodes[0].gpus[0].name == "H100-SXM-80GB"
        assert "H200 by --gpu" in said(found)

    def test_model_with_fewer_links_than_shown_is_refused(self) -> None:
        """NV18 cannot be an A100."""
        found = assemble([matrix()], Hints(gpu="A100-80GB", nic_bytes_per_s=25e9))
        assert found.topology is None
        assert "shows 18 NVLinks" in said(found)

    def test_unknown_domains_are_listed_alone_and_said(self) -> None:
        """A list of names does not tell who is joined to whom."""
        found = assemble([named()])
        assert found.nvlink_domains == tuple((gpu,) for gpu in range(8))
        assert "which GPUs NVLink joins is in no source" in said(found)
        assert found.topology is None

    def test_four_gpus_with_all_links_may_be_a_tray(self) -> None:
        """Half an HGX board and a tray of a rack look alike: never 4 nor 72 in silence."""
        tray = matrix(4)
        assert "spans other hosts is not known" in said(assemble([tray]))
        assert "spans other hosts" not in said(assemble([tray], HINTS))
        assert assemble([tray], replace(HINTS, gpu="GB200", nodes=18)).topology is None
        rack = assemble([tray], replace(HINTS, gpu="GB200", nodes=18, nvlink_domain_nodes=18))
        assert rack.nvlink_domains == (tuple(range(72)),)
        assert topology(rack).domain_count == 1

    def test_mig_has_no_topology(self) -> None:
        """A slice cannot hold a share of a model."""
        sliced = replace(named(1), gpus=(replace(named(1).gpus[0], faults=("split into 7 MIG instances",)),))
        found = assemble([sliced])
        assert found.topology is None
        assert "MIG" in said(found)

    def test_pcie_machine_shares_its_switches(self) -> None:
        """GPUs below one PCIe switch share its uplink, whose rate is an assumption."""
        host = replace(
            matrix(4, "NODE"),
            gpu_paths={**dict.fromkeys(combinations(range(4), 2), "NODE"), (0, 1): "PIX", (2, 3): "PIX"},
            nics=(),
            nic_paths={},
        )
        (node,) = topology(assemble([host], Hints(gpu="L40S"))).nodes
        assert node.pcie is not None
        assert [switch.gpus for switch in node.pcie.switches] == [(0, 1), (2, 3)]
        assert (node.pcie.rates[0].bytes_per_s, node.pcie.rates[0].evidence.kind) == (32e9, "preset")
        assert node.pcie.switches[0].uplink.evidence.kind == "assumed"


class TestMeasured:
    def sweep(self, bytes_per_s: float, ranks: int = 8) -> MeasureFacts:
        samples = tuple(
            Sample(size, 20e-6 + size / bytes_per_s, 0.0, 0.0, 0.0, in_place=False)
            for size in (1 << 26, 1 << 27, 1 << 28, 1 << 29)
        )
        return MeasureFacts("alltoall.txt", "nccl-tests", "alltoall", ranks, samples=samples)

    def test_measured_rate_replaces_the_data_sheet(self) -> None:
        """An all-to-all over the eight GPUs of one host waits for NVLink: 7/8 of its size leave each GPU."""
        (node,) = topology(assemble([matrix(), self.sweep(400e9)], HINTS)).nodes
        rate = node.nvlink.islands[0].rates[3]
        assert rate.evidence.kind == "measured"
        assert rate.bytes_per_s == pytest.approx(350e9, rel=0.01)

    def test_measurement_that_does_not_fit_changes_nothing(self) -> None:
        """Another number of ranks: said, and the rates stay."""
        found = assemble([matrix(), self.sweep(400e9, ranks=16)], HINTS)
        assert topology(found).nodes[0].nvlink.islands[0].rates[0].evidence.kind == "preset"
        assert "16 ranks" in said(found)


class TestOutput:
    def test_keys_of_the_json(self) -> None:
        """Exactly these, and plain data all the way; the topology reads back to an equal one."""
        found = assemble([matrix(), named(), ports()])
        data = json.loads(json.dumps(found.to_dict()))
        keys = "gpus nvlink_domains nics affinity unknown warnings hosts kinds topology"
        assert list(data) == keys.split()
        assert data["affinity"]["0"] == ["NIC0"]
        assert topology_from_dict(data["topology"]) == found.topology

    def test_same_facts_same_bytes(self) -> None:
        """Twice the same input gives the same output."""
        facts = [matrix(), named(), ports(down=(2,))]
        assert json.dumps(assemble(facts).to_dict()) == json.dumps(assemble(facts).to_dict())

    @pytest.mark.parametrize(
        "hints",
        [
            Hints(gpu="H9000"),
            Hints(nodes=0),
            Hints(nodes=10**9),
            Hints(nic_bytes_per_s=-1.0),
            Hints(oversubscription=0.5),
            Hints(nvlink_domain_nodes=-2),
        ],
    )
    def test_hints_that_cannot_be(self, hints: Hints) -> None:
        """One line, with the flag or the nearest name."""
        with pytest.raises(BadInput) as caught:
            assemble([matrix()], hints)
        assert "\n" not in str(caught.value)

    def test_no_gpu_at_all(self) -> None:
        """What was given is named, and what to add."""
        with pytest.raises(BadInput, match=r"ibstat.*topo -m"):
            assemble([ports()])


@pytest.mark.skipif(
    not RECORDINGS.is_dir(), reason=f"recordings of other machines are not beside this checkout: {RECORDINGS}"
)
class TestRecordings:
    def test_published_paste_with_two_hints_is_a_topology(self) -> None:
        """8 x H20 with eight NICs, from a bug report: 18 links a GPU, one NIC each."""
        found = assemble(
            read_file(RECORDINGS / "topo_h20x8_sglang_envprefix.txt"),
            Hints(gpu="H20", nic_bytes_per_s=50e9, nodes=4),
        )
        assert topology(found).gpu_count == 32
        assert topology(found).nodes[0].nvlink.islands[0].rates[0].bytes_per_s == 450e9
        assert found.affinity[31] == ("NIC7",)

    def test_nearest_nics_of_published_pastes(self) -> None:
        """Two NICs a pair on DGX A100, none for half of the GPUs of another host, PIX among NODE where NUMA
        is off. From the index of the recordings.
        """
        dgx = assemble(read_file(RECORDINGS / "topo_dgxa100_mlx5_header_truncated.txt"))
        assert (dgx.nics, dgx.affinity[0], dgx.affinity[5]) == (
            12,
            ("mlx5_0", "mlx5_1"),
            ("mlx5_6", "mlx5_7"),
        )
        half = assemble(read_file(RECORDINGS / "topo_a100x8_4nic.txt"))
        assert [half.affinity[gpu] for gpu in range(4, 8)] == [()] * 4
        roce = assemble(read_file(RECORDINGS / "topo_h100x8_roce_numaoff_gluedcells.txt"))
        assert [roce.affinity[gpu] for gpu in range(8)] == [
            (f"NIC{nic}",) for nic in (0, 1, 2, 5, 6, 7, 8, 11)
        ]

    def test_list_and_matrix_of_one_paste(self) -> None:
        """What a bug report holds together needs only the NIC rate."""
        listing = "".join(
            f"GPU {i}: {H100} (UUID: GPU-{i:08x}-0000-0000-0000-000000000000)\n" for i in range(8)
        )
        paste = listing.encode() + (RECORDINGS / "topo_8gpu_nv18_8nic_pxb.txt").read_bytes()
        found = assemble(read_facts(paste, "report"), Hints(nic_bytes_per_s=50e9))
        assert topology(found).nodes[0].gpus[0].name == "H100-SXM-80GB"
