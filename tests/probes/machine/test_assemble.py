"""From facts to one machine: merging sources and hosts, what is asked for when a number is missing, and what each rate rests on."""

import json
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput
from planner.topology import Topology, topology_from_dict
from probes.base.facts import FabricFacts, Facts, GpuFact, HostFacts, MeasureFacts, NicFact, PortFact, Sample
from probes.importers.registry import read_facts, read_file
from probes.machine.assemble import Hints, Imported, assemble
from probes.machine.gpu_names import GPUS, links_of_gpu, named_gpu, payload_bytes_per_s
from tests.places import SHARED

RECORDINGS = SHARED / "data/topology"
H100 = "NVIDIA H100 80GB HBM3"
HINTS = Hints(gpu="H100-SXM", nic_bytes_per_s=50e9)
UUID = "12345678-1234-1234-1234-1234567890ab.1"


def matrix(
    gpus: int = 8, label: str = "NV18", host: str | None = None, source: str = "topo.txt", legend: bool = True
) -> HostFacts:
    """A host as `topo -m` shows it: one NIC beside each GPU, two sockets."""
    near = {
        (i, j): "PIX" if i == j else "NODE" if (i < gpus / 2) == (j < gpus / 2) else "SYS"
        for i in range(gpus)
        for j in range(gpus)
    }
    return HostFacts(
        source,
        "topo-m",
        "imported",
        host,
        tuple(
            GpuFact(i, numa=int(i >= gpus / 2), nvlinks=int(label[2:]) if label[:2] == "NV" else 0)
            for i in range(gpus)
        ),
        tuple(NicFact(f"NIC{i}", f"mlx5_{i}" if legend else None) for i in range(gpus)),
        dict.fromkeys(combinations(range(gpus), 2), label),
        near,
        "switch" if label[:2] == "NV" else "none",
        (tuple(range(gpus)),) if label[:2] == "NV" else tuple((i,) for i in range(gpus)),
    )


def named(gpus: int = 8, name: str = H100, host: str | None = None, first: int = 0) -> HostFacts:
    """A host as `nvidia-smi -L` shows it."""
    return HostFacts(
        "list.txt",
        "nvidia-smi-list",
        "imported",
        host,
        tuple(GpuFact(i, name, f"GPU-{first + i}") for i in range(gpus)),
    )


def ports(
    nics: int = 8,
    rate: float = 50e9,
    host: str | None = None,
    down: tuple[int, ...] = (),
    source: str = "ibstat.txt",
) -> HostFacts:
    """A host as `ibstat` shows it, in its order: mlx5_0, mlx5_1, mlx5_10, mlx5_2."""
    order = sorted(range(nics), key=str)
    return HostFacts(
        source,
        "ibstat",
        "imported",
        host,
        nics=tuple(NicFact(f"mlx5_{i}", rate_bytes_per_s=rate, up=i not in down) for i in order),
    )


def said(found: Imported) -> str:
    return " | ".join((*found.unknown, *found.warnings))


def topology(found: Imported) -> Topology:
    assert found.topology is not None, said(found)
    return found.topology


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
        """Links counted in the matrix at the rate of a data sheet are 'preset', the NIC is 'imported', the stated one 'assumed'."""
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


class TestSeveralHosts:
    def test_names_make_nodes(self) -> None:
        """Facts of one name are one host; two names are two nodes."""
        facts = [
            fact
            for host, first in (("n1", 0), ("n2", 8))
            for fact in (matrix(host=host), named(host=host, first=first), ports(host=host))
        ]
        found = assemble(facts)
        assert found.hosts == ("n1", "n2")
        assert found.nvlink_domains == (tuple(range(8)), tuple(range(8, 16)))
        assert topology(found).gpu_count == 16
        assert found.affinity[9] == ("NIC1",)
        assert "taken as flat" in said(found)

    def test_two_unnamed_files_alike_are_one_host_and_said(self) -> None:
        """Never two nodes in silence; --nodes says it."""
        twice = [matrix(source="a.txt"), matrix(source="b.txt")]
        once = assemble(twice, HINTS)
        assert once.gpus == 8
        assert any("--nodes 2" in sentence for sentence in once.unknown)
        stated = assemble(twice, replace(HINTS, nodes=2))
        assert stated.gpus == 16
        assert not any("--nodes" in sentence for sentence in stated.unknown)

    def test_two_unnamed_files_that_differ_are_two_hosts_and_said(self) -> None:
        """They cannot be one matrix; that they are two hosts is still an assumption."""
        found = assemble([matrix(source="a.txt"), matrix(4, source="b.txt")], HINTS)
        assert found.gpus == 12
        assert any("taken as two hosts" in sentence for sentence in found.unknown)

    def test_localhost_is_no_name(self) -> None:
        """Two hosts that call themselves localhost are told apart by their GPUs."""
        one, other = (replace(named(host="localhost", first=first), kind=f"nvml{first}") for first in (0, 8))
        assert assemble([one, other]).gpus == 16

    def test_one_name_for_two_hosts_is_said(self) -> None:
        """The UUIDs differ, so these are two hosts whatever they are called."""
        found = assemble([named(host="node", first=0), named(host="node", first=8)])
        assert found.gpus == 16
        assert "other UUIDs" in said(found)

    def test_one_gpu_on_two_hosts_is_said(self) -> None:
        """The same UUID under two names is counted twice, and that is told."""
        assert "counted twice" in said(assemble([named(host="n1"), named(host="n2")]))

    def test_unnamed_part_joins_the_only_host_or_none(self) -> None:
        """An ibstat without a name belongs to the one host there is; with two hosts it is not used."""
        assert (
            topology(assemble([matrix(host="n1"), named(host="n1"), ports()]))
            .nodes[0]
            .nics[0]
            .rate.bytes_per_s
            == 50e9
        )
        found = assemble([matrix(host="n1"), matrix(host="n2"), ports()], Hints(gpu="H100"))
        assert found.nics == 16
        assert any("not used" in sentence for sentence in found.unknown)

    def test_fabric_of_the_gpus_joins_hosts(self) -> None:
        """Eight trays of one fabric are one domain of 32; without a common key they are eight."""
        trays = [matrix(4, host=f"t{n}") for n in range(8)]
        joined = [replace(tray, gpus=tuple(replace(gpu, fabric=UUID) for gpu in tray.gpus)) for tray in trays]
        found = assemble(joined, replace(HINTS, gpu="GB200"))
        assert found.nvlink_domains == (tuple(range(32)),)
        assert topology(found).domain_count == 1
        assert len(assemble(trays, HINTS).nvlink_domains) == 8

    def test_stated_number_must_fit_the_sources(self) -> None:
        """Two hosts are described, four are stated: which are they?"""
        with pytest.raises(BadInput, match="--nodes 4"):
            assemble([matrix(host="n1"), matrix(host="n2")], replace(HINTS, nodes=4))


def rails(hosts: list[str], uplinks: int, host_rate: float = 50e9) -> FabricFacts:
    """Eight leaves, one for each NIC of every host."""
    cables = tuple(
        PortFact(host, f"mlx5_{nic}", f"leaf{nic}", host_rate) for host in hosts for nic in range(8)
    )
    pairs = {(f"leaf{nic}", "spine"): uplinks for nic in range(8)}
    return FabricFacts(
        "ibnet.txt",
        "ibnetdiscover",
        "imported",
        cables,
        pairs,
        {pair: count * 50e9 for pair, count in pairs.items()},
    )


class TestFabric:
    def hosts(self, count: int) -> list[Facts]:
        return [matrix(host=f"n{number}") for number in range(count)]

    def test_rails_and_oversubscription(self) -> None:
        """NIC i of every host is on leaf i; four hosts over two uplinks are 2 : 1."""
        fabric = topology(assemble([*self.hosts(4), rails([f"n{n}" for n in range(4)], 2)], HINTS)).fabric
        assert (fabric.kind, fabric.nodes_per_leaf, fabric.oversubscription, fabric.evidence.kind) == (
            "rail",
            4,
            2.0,
            "imported",
        )

    def test_leaf_by_leaf_order_of_hosts(self) -> None:
        """The planner counts consecutive hosts, so the ranks follow the leaves."""
        cables = tuple(PortFact(f"n{n}", None, f"leaf{n % 2}") for n in range(4))
        found = assemble(
            [
                *self.hosts(4),
                FabricFacts(
                    "topology.conf", "slurm", "imported", cables, {("leaf0", "s"): 0, ("leaf1", "s"): 0}
                ),
            ],
            HINTS,
        )
        assert found.hosts == ("n0", "n2", "n1", "n3")
        assert (topology(found).fabric.kind, topology(found).fabric.nodes_per_leaf) == ("leaf-spine", 2)
        assert "--oversubscription" in said(found)
        assert topology(found).fabric.evidence.kind == "assumed"

    def test_unequal_leaves_are_said(self) -> None:
        """1 and 3 hosts cannot be described as so many a leaf."""
        cables = tuple(PortFact(f"n{n}", None, "leaf0" if n == 0 else "leaf1") for n in range(4))
        found = assemble([*self.hosts(4), FabricFacts("topology.conf", "slurm", "imported", cables)], HINTS)
        assert topology(found).fabric.kind == "none"
        assert "unequal leaves" in said(found)

    def test_one_host_stands_for_the_others(self) -> None:
        """Leaves are as full as the fabric shows; how many hosts there are is asked."""
        shown = rails([f"n{n}" for n in range(4)], 4)
        one = assemble([matrix(host="n0"), shown], HINTS)
        assert topology(one).fabric.nodes_per_leaf == 4
        assert "--nodes 4" in said(one)
        four = topology(assemble([matrix(host="n0"), shown], replace(HINTS, nodes=4)))
        assert (four.node_count, four.fabric.kind, four.fabric.nodes_per_leaf) == (4, "rail", 4)

    def test_fabric_of_other_hosts_is_not_used(self) -> None:
        """No cable of the host by name or GUID: said, and nothing is taken from it. A GUID joins a host without a name."""
        stranger = rails(["x1", "x2"], 2)
        found = assemble([matrix(), stranger], HINTS)
        assert topology(found).fabric.kind == "none"
        assert "no cable of" in said(found)
        host = replace(
            matrix(), nics=tuple(replace(nic, guid=f"{i + 1:016x}") for i, nic in enumerate(matrix().nics))
        )
        joined = replace(
            stranger,
            ports=tuple(
                replace(port, guid=f"{i % 8 + 1:016x}") if port.host == "x1" else port
                for i, port in enumerate(stranger.ports)
            ),
        )
        assert topology(assemble([host, joined], HINTS)).fabric.kind == "rail"

    def test_stated_oversubscription_is_an_assumption(self) -> None:
        """Without a fabric source it holds for every host's own uplink."""
        fabric = topology(assemble(self.hosts(2), replace(HINTS, oversubscription=4.0))).fabric
        assert (fabric.oversubscription, fabric.evidence.kind) == (4.0, "assumed")


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
        assert list(data) == [
            "gpus",
            "nvlink_domains",
            "nics",
            "affinity",
            "unknown",
            "warnings",
            "hosts",
            "kinds",
            "topology",
        ]
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


class TestNames:
    @pytest.mark.parametrize(
        ("name", "model"),
        [
            (H100, "H100-SXM-80GB"),
            ("H100-SXM", "H100-SXM-80GB"),
            ("A100-SXM4-80GB", "A100-SXM-80GB"),
            ("NVIDIA A100-SXM4-40GB", "A100-SXM-40GB"),
            ("NVIDIA A100 80GB PCIe", "A100-PCIe-80GB"),
            ("Tesla V100-SXM2-32GB", "V100-SXM2-32GB"),
            ("NVIDIA H20-3e", "H20-3e-SXM-141GB"),
            ("NVIDIA GB200", "GB200-186GB"),
            ("NVIDIA H100 PCIe", None),
            ("NVIDIA GeForce RTX 4090", None),
            (None, None),
        ],
    )
    def test_product_names(self, name: str | None, model: str | None) -> None:
        """A name that is not in the table is no model that looks like it."""
        links = links_of_gpu(name)
        assert (links.model if links else None) == model

    def test_table_and_catalogue_agree(self) -> None:
        """Every model is in the catalogue, under a name that nobody else has, and its short names are written as they are compared."""
        names = [name for gpu in GPUS for name in gpu.names]
        assert len(names) == len(set(names))
        for gpu in GPUS:
            assert named_gpu(gpu.model) == gpu
            assert all(links_of_gpu(name) == gpu for name in gpu.names)
            assert (
                topology(assemble([matrix(1, "NODE")], Hints(gpu=gpu.model, nic_bytes_per_s=1e9)))
                .nodes[0]
                .gpus[0]
                .name
                == gpu.model
            )

    def test_payload_of_printed_speeds(self) -> None:
        """Unknown speeds are taken as they are."""
        assert [payload_bytes_per_s(rate) for rate in (26.562e9, 53.125e9, 25.781e9, 25e9, 14.062e9)] == [
            25e9,
            50e9,
            25e9,
            25e9,
            14.062e9,
        ]


@st.composite
def host_facts(draw: st.DrawFn) -> HostFacts:
    """Partial facts of any kind, with holes anywhere."""
    gpus, nics = draw(st.integers(0, 5)), draw(st.integers(0, 4))
    words = st.sampled_from(["NV18", "NV4", "NV1", "PIX", "PXB", "PHB", "NODE", "SYS"])
    maybe = st.booleans()
    return HostFacts(
        draw(st.sampled_from(["a", "b"])),
        draw(st.sampled_from(["topo-m", "nccl-xml", "sysfs"])),
        draw(st.sampled_from(["read", "imported"])),
        draw(st.sampled_from([None, "n1", "n2", "localhost"])),
        tuple(
            GpuFact(
                i,
                draw(st.sampled_from([None, H100, "NVIDIA X1"])),
                draw(st.sampled_from([None, f"GPU-{i}"])),
                numa=draw(st.sampled_from([None, 0, 3])),
            )
            for i in range(gpus)
        ),
        tuple(
            NicFact(
                f"NIC{i}",
                draw(st.sampled_from([None, f"mlx5_{i}"])),
                draw(st.sampled_from([None, 25e9, 50e9])),
                up=draw(maybe),
            )
            for i in range(nics)
        ),
        {pair: draw(words) for pair in combinations(range(gpus), 2) if draw(maybe)},
        {
            (i, j): draw(st.sampled_from(["PIX", "PXB", "PHB", "NODE", "SYS"]))
            for i in range(gpus)
            for j in range(nics)
            if draw(maybe)
        },
        draw(st.sampled_from([None, "none", "switch", "mesh", "bridge"])),
        draw(
            st.sampled_from([None, tuple((i,) for i in range(gpus)), (tuple(range(gpus)),) if gpus else ()])
        ),
    )


@given(
    st.lists(host_facts(), min_size=1, max_size=4),
    st.sampled_from([Hints(), HINTS, Hints(gpu="GB200", nodes=2, nic_bytes_per_s=1e9)]),
)
def test_any_facts_give_a_machine_or_one_line(facts: list[HostFacts], hints: Hints) -> None:
    """Holes and contradictions: a topology that holds, or a sentence; every GPU is in one domain, no other exception."""
    try:
        found = assemble(facts, hints)
    except BadInput:
        return
    assert sorted(gpu for domain in found.nvlink_domains for gpu in domain) == list(range(found.gpus))
    assert sorted(found.affinity) == list(range(found.gpus))
    assert found.topology is not None or any("no topology" in sentence for sentence in found.unknown)
    if found.topology is not None:
        assert found.topology.gpu_count == found.gpus
    json.dumps(found.to_dict(), allow_nan=False)


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
        """Two NICs a pair on DGX A100, none for half of the GPUs of another host, PIX among NODE where NUMA is off. From the index of the recordings."""
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
