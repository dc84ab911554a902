"""Files that people have, from the paste to the machine: each was read wrongly once."""

from pathlib import Path

import pytest

from planner.base import BadInput
from planner.topology import Topology
from probes.machine.hints import Hints
from probes.survey.found import Found
from probes.survey.from_files import import_files
from tests.probes.importers.smi_texts import LEGEND, NVLINK, behind, listed, matrix

H100 = Hints(gpu="H100-SXM", nic_bytes_per_s=50e9)
LEAVES = "SwitchName=leaf0 Nodes=gpu[01-08]\nSwitchName=leaf1 Nodes=gpu[09-16]\n"
TREE = LEAVES + "SwitchName=top Switches=leaf[0-1]\n"


def found(folder: Path, hints: Hints, **texts: str) -> Found:
    paths = []
    for name, text in texts.items():
        paths.append(folder / f"{name}.txt")
        paths[-1].write_text(text)
    return import_files(paths, hints)


def said(one: Found) -> str:
    return " | ".join((*one.machine.unknown, *one.machine.warnings))


def hints(**more: object) -> Hints:
    return Hints(**{"gpu": "H100-SXM", "nic_bytes_per_s": 50e9, **more})  # type: ignore[arg-type]


def nics(topology: Topology) -> list[tuple[tuple[int, ...], str, float]]:
    return [(nic.gpus, nic.name, nic.rate.bytes_per_s / 1e9) for nic in topology.nodes[0].nics]


class TestNvlinkThatIsMissing:
    def test_pci_paths_alone(self, tmp_path: Path) -> None:
        """The matrix of `topo -mp`: what NVLink joins is asked for, never taken as nothing."""
        one = found(tmp_path, H100, topo=matrix(8, "NODE"))
        assert one.machine.topology is None
        assert "topo -mp" in said(one)
        with pytest.raises(BadInput, match="which GPUs NVLink joins is not known"):
            _ = one.topology

    def test_links_that_are_down(self, tmp_path: Path) -> None:
        """The legend explains NV# and no pair has one, of GPUs with 18."""
        one = found(tmp_path, H100, topo=matrix(8, "NODE").replace(LEGEND, LEGEND + NVLINK))
        assert "0 NVLinks are shown of the 18" in said(one)
        assert one.topology.nodes[0].nvlink.kind == "none"


class TestOneHostAndItsFabric:
    def test_hosts_per_leaf_come_from_the_tree(self, tmp_path: Path) -> None:
        """The matrix names no host, the tree names 16: with --nodes the leaves are the tree's."""
        one = found(tmp_path, hints(nodes=16, oversubscription=2.0), topo=matrix(8), tree=TREE)
        fabric = one.topology.fabric
        assert (one.topology.node_count, fabric.kind, fabric.nodes_per_leaf) == (16, "leaf-spine", 8)
        assert (fabric.oversubscription, fabric.evidence.kind) == (2.0, "assumed")
        assert "none of" in said(one)
        assert "--oversubscription" not in said(one)
        assert "--nic" not in said(one)

    def test_without_nodes_it_says_how_many(self, tmp_path: Path) -> None:
        """One node is planned, and the flag that makes a cluster of it is named."""
        one = found(tmp_path, H100, topo=matrix(8), tree=TREE)
        assert one.topology.node_count == 1
        assert "give --nodes 16" in said(one)

    def test_without_a_ratio_it_is_asked_for(self, tmp_path: Path) -> None:
        """A tree has no rates."""
        assert "give --oversubscription" in said(found(tmp_path, hints(nodes=16), topo=matrix(8), tree=TREE))

    @pytest.mark.parametrize(
        ("sizes", "nodes", "leaf"),
        [((4, 8), 8, 8), ((8, 3, 8), 19, 8), ((6, 8, 4), 18, None), ((8, 3, 5), 16, None)],
    )
    def test_leaves_that_are_not_alike(
        self, tmp_path: Path, sizes: tuple[int, ...], nodes: int, leaf: int | None
    ) -> None:
        """The fullest leaves are filled first; where two of them are not full the network is flat."""
        lines = (f"SwitchName=l{at} Nodes=x{at}n[1-{size}]" for at, size in enumerate(sizes))
        one = found(tmp_path, hints(nodes=nodes), topo=matrix(8), tree="\n".join(lines))
        fabric = one.topology.fabric
        assert (None if fabric.kind == "none" else fabric.nodes_per_leaf) == leaf
        assert ("unequal leaves" in said(one)) == (leaf is None)

    def test_more_hosts_than_the_tree_has(self, tmp_path: Path) -> None:
        """The others are on leaves as full, which is said."""
        one = found(tmp_path, hints(nodes=32), topo=matrix(8), tree=TREE)
        assert one.topology.fabric.nodes_per_leaf == 8
        assert "shows 16 hosts, --nodes says 32" in said(one)

    def test_what_scontrol_shows_is_the_same_tree(self, tmp_path: Path) -> None:
        """It names all hosts below a switch; the spine is no leaf of them."""
        shown = (
            "SwitchName=leaf0 Level=0 LinkSpeed=1 Nodes=gpu[01-08]\n"
            "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=gpu[09-16]\n"
            "SwitchName=top Level=1 LinkSpeed=1 Nodes=gpu[01-16] Switches=leaf[0-1]\n"
        )
        one = found(tmp_path, hints(nodes=16), topo=matrix(8), tree=shown)
        assert one.topology.fabric.nodes_per_leaf == 8
        assert "several leaves" not in said(one)
        assert "not known are passed over" not in said(one)

    def test_blocks_are_domains_of_racks(self, tmp_path: Path) -> None:
        """Trays of GB200 in blocks of 18 share their NVLink; blocks of other machines are taken as leaves."""
        blocks = "BlockName=b1 Nodes=n[01-18]\nBlockName=b2 Nodes=n[19-36]\nBlockSizes=18\n"
        rack = found(tmp_path, hints(gpu="GB200", nodes=36), topo=matrix(4), blocks=blocks)
        assert (rack.topology.fabric.nvlink_domain_nodes, rack.topology.domain_count) == (18, 2)
        half = found(tmp_path, hints(gpu="GB200", nodes=9), topo=matrix(4), blocks=blocks)
        assert half.topology.fabric.nvlink_domain_nodes == 9
        other = found(tmp_path, hints(nodes=36), topo=matrix(8), blocks=blocks)
        assert (other.topology.fabric.nodes_per_leaf, other.topology.fabric.nvlink_domain_nodes) == (18, 1)


class TestNics:
    def test_a_gpu_without_a_nic_shares_or_is_given_one(self, tmp_path: Path) -> None:
        """Two of four GPUs have a NIC beside them. All share both, which is said; --nic-of decides."""
        topo = matrix(4, near={(0, 0): "PIX", (1, 1): "PIX"}, nics=2)
        shared = found(tmp_path, H100, topo=topo)
        assert nics(shared.topology) == [((0, 1, 2, 3), "mlx5_0", 50), ((0, 1, 2, 3), "mlx5_1", 50)]
        assert "--nic-of 2=NIC" in said(shared)
        given = found(tmp_path, hints(nic_of=((2, ("mlx5_0",)), (3, ("NIC1",)))), topo=topo)
        assert nics(given.topology) == [((0, 2), "mlx5_0", 50), ((1, 3), "mlx5_1", 50)]
        assert given.machine.affinity[3] == ("NIC1",)

    @pytest.mark.parametrize(
        ("nic_of", "part"), [((4, ("mlx5_0",)), "GPUs 0 to 3"), ((0, ("x",)), "no NIC 'x'")]
    )
    def test_one_that_is_not_there(
        self, tmp_path: Path, nic_of: tuple[int, tuple[str, ...]], part: str
    ) -> None:
        """One line names what the host has."""
        with pytest.raises(BadInput, match=part):
            _ = found(tmp_path, hints(nic_of=(nic_of,)), topo=matrix(4)).topology

    def test_storage_and_management_are_not_counted(self, tmp_path: Path) -> None:
        """Two NICs sit beside a GPU and two on a socket alone: 50 GB/s for two GPUs, not 100."""
        near = {(gpu, nic): "NODE" for gpu in (0, 1) for nic in (0, 1)} | {(0, 0): "PIX"}
        near |= {(gpu, nic): "NODE" for gpu in (2, 3) for nic in (2, 3)} | {(3, 3): "PXB"}
        one = found(tmp_path, H100, topo=matrix(4, near=near, nics=4))
        assert nics(one.topology) == [((0, 1), "mlx5_0", 50), ((2, 3), "mlx5_3", 50)]
        assert "nearest of no GPU (storage or management?): NIC1, NIC2" in said(one)

    def test_never_more_than_pcie_carries(self, tmp_path: Path) -> None:
        """Seven virtual functions beside each GPU, and more that the matrix leaves out: 64 GB/s a GPU."""
        near = {(gpu, nic): "PXB" for gpu in range(2) for nic in range(14) if nic % 2 == gpu}
        head = "20 NICs found in the topology, only displaying 14 in the matrix.\n"
        one = found(tmp_path, H100, topo=head + matrix(2, near=near, nics=14))
        for gpu in (0, 1):
            rates = [rate for gpus, _, rate in nics(one.topology) if gpus == (gpu,)]
            assert len(rates) == 7
            assert sum(rates) == pytest.approx(64)
        assert "20 NICs were found and 14 are displayed" in said(one)
        assert "GPU 0, 1: 7 NICs are 350 GB/s together, PCIe carries 64 GB/s" in said(one)

    def test_a_fast_card_behind_fast_pcie_keeps_its_rate(self, tmp_path: Path) -> None:
        """800 Gb/s of a B300 and of a GB300."""
        for gpu in ("B300", "GB300"):
            one = found(tmp_path, hints(gpu=gpu, nic_bytes_per_s=100e9), topo=matrix(4))
            assert {rate for _, _, rate in nics(one.topology)} == {100.0}


class TestFilesOfSeveralHosts:
    @pytest.mark.parametrize("nodes", [None, 2])
    def test_facts_of_one_file_stay_together(self, tmp_path: Path, nodes: int | None) -> None:
        """The list and the matrix of a host in a file each: two hosts, without a doubt to tell."""
        texts = {f"host{name}": listed(8, host=name) + matrix(8) for name in (1, 2)}
        one = found(tmp_path, Hints(nic_bytes_per_s=50e9, nodes=nodes), **texts)
        assert one.topology.node_count == 2
        assert "taken as two" not in said(one)

    def test_pdsh_of_all_hosts_in_a_file_a_tool(self, tmp_path: Path) -> None:
        """Lists in one file, matrices in another: hosts by name."""
        lists = "".join(behind(f"n{n}", listed(8, host=n)) for n in (10, 9))
        one = found(
            tmp_path,
            Hints(nic_bytes_per_s=50e9),
            a=lists,
            b=behind("n9", matrix(8)) + behind("n10", matrix(8)),
        )
        assert one.machine.hosts == ("n9", "n10")
        assert [node.nvlink.kind for node in one.topology.nodes] == ["switch", "switch"]


class TestModels:
    def test_a_report_that_names_the_model(self, tmp_path: Path) -> None:
        """SGLang's and vLLM's: one line for all alike, or one a GPU, or behind the question."""
        for line in (
            "GPU 0,1,2,3: NVIDIA H200\n",
            "".join(f"GPU {gpu}: NVIDIA H200\n" for gpu in range(4)),
            "GPU models and configuration: GPU 0: NVIDIA H200\n"
            + "".join(f"GPU {g}: NVIDIA H200\n" for g in (1, 2, 3)),
        ):
            one = found(
                tmp_path,
                Hints(nic_bytes_per_s=50e9),
                report=f"CUDA available: True\n{line}NVIDIA Topology:\n{matrix(4)}",
            )
            assert one.topology.nodes[0].gpus[0].name == "H200-SXM-141GB"

    def test_a_gpu_that_a_person_describes(self, tmp_path: Path) -> None:
        """--gpu-model: by the name that the driver prints."""
        from probes.machine.own_gpus import read_gpu_models

        path = tmp_path / "gpus.yaml"
        path.write_text(
            "H100-96:\n  names: [NVIDIA H100 96GB HBM3]\n  memory: 96 GB\n  memory_rate: 3350 GB/s\n"
            "  flops: {bf16: 989 TFLOP/s}\n  nvlinks: 18\n  nvlink_rate: 25 GB/s\n  pcie_rate: 64 GB/s\n"
            "  evidence: preset\n  source: the vendor's sheet\n"
        )
        own = read_gpu_models(path)
        paste = listed(4, name="NVIDIA H100 96GB HBM3") + matrix(4)
        one = found(tmp_path, Hints(nic_bytes_per_s=50e9, own_gpus=own), paste=paste)
        node = one.topology.nodes[0]
        assert (node.gpus[0].name, node.gpus[0].memory_bytes) == ("H100-96", 96e9)
        assert node.nvlink.islands[0].rates[0].bytes_per_s == 18 * 25e9
        unnamed = found(tmp_path, Hints(nic_bytes_per_s=50e9, own_gpus=own), paste=matrix(4))
        assert unnamed.topology.nodes[0].gpus[0].name == "H100-96"
        with pytest.raises(BadInput, match="--gpu-model"):
            _ = found(tmp_path, Hints(nic_bytes_per_s=50e9), paste=paste).topology
