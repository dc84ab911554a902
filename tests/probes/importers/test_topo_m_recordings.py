"""`nvidia-smi topo -m`: published pastes of other machines, where the recordings are here."""

import pytest

from probes.importers import topo_m
from tests.places import SHARED
from tests.probes.importers.topo_pastes import told

FOLDER = SHARED / "data/topology"

# GPUs, NICs, domains, kind, and a word of `unknown` or `warnings`; from the index of the recordings.
EIGHT = (tuple(range(8)),)
ALONE8 = tuple((gpu,) for gpu in range(8))
RECORDINGS = {
    "topo_2gpu_nv1_litgpt": (2, 0, ((0, 1),), "bridge", ""),
    "topo_4gpu_phb_litgpt": (4, 0, ALONE8[:4], "none", ""),
    "topo_a100x8_mleng": (8, 0, EIGHT, "switch", ""),
    "topo_h100x8_smt_mleng": (8, 0, EIGHT, "switch", ""),
    "topo_dgx1v_4ib_msccl": (8, 4, EIGHT, "mesh", ""),
    "topo_dgx1_ucxpy_indented": (8, 4, EIGHT, "mesh", ""),
    "topo_v100x8_oneflow_mixed_tabs": (8, 2, EIGHT, "mesh", ""),
    "topo_h100x8_roce_numaoff_gluedcells": (8, 12, EIGHT, "switch", ""),
    "topo_aws_p3_8xl_v100x4": (4, 0, (tuple(range(4)),), "mesh", ""),
    "topo_dgx1_pytorch_readme_indented": (8, 0, EIGHT, "mesh", ""),
    "topo_a800x8_8nic_truncated": (8, 8, EIGHT, "switch", "NIC4 is cut"),
    "topo_dgxa100_mlx5_header_truncated": (8, 12, EIGHT, "switch", "filled"),
    "topo_azure_nc96ads_a100pcie_x4": (4, 0, ((0, 1), (2, 3)), "bridge", ""),
    "topo_a100x8_4nic": (8, 4, EIGHT, "switch", ""),
    "topo_h20x8_sglang_envprefix": (8, 8, EIGHT, "switch", ""),
    "topo_gb200_tray_x4_truncated": (4, 6, (tuple(range(4)),), "switch", "GPU3 is cut"),
    "topo_b200x8_degraded_gpu2_noheader": (
        8,
        12,
        ((0, 1, 3, 4, 5, 6, 7), (2,)),
        "switch",
        "GPU 2 has no active NVLink",
    ),
    "topo_b200x8_snc_gluedheader_truncated": (8, 12, EIGHT, "switch", "GPU4 is cut"),
    "topo_2gpu_nv12_8nic_blankcpu": (2, 8, ((0, 1),), None, ""),
    "topo_2x5090_with_p2p_matrix": (2, 0, ALONE8[:2], "none", "topo -p2p"),
    "topo_h100x4_nv6_mesh_4nic": (4, 4, (tuple(range(4)),), "mesh", ""),
    "topo_8gpu_pcieswitch_pix_node": (8, 0, ALONE8, "none", ""),
    "topo_8gpu_nv18_8nic_pxb": (8, 8, EIGHT, "switch", ""),
    "topo_8gpu_nv18_9nic_4numa_truncated": (8, 9, EIGHT, "switch", "GPU6 is cut"),
    "topo_k80_legacy_soc": (4, 1, ALONE8[:4], "none", ""),
    "topo_2gpu_ansi_colour": (2, 2, ((0, 1),), None, ""),
    "topo_dgx1v_nic0_gpunumaid": (8, 1, EIGHT, "mesh", ""),
    "topo_2gpu_markdown_quote_cpulist": (2, 2, ((0, 1),), None, ""),
    "topo_1gpu_p4_numa_na": (1, 0, ((0,),), "none", ""),
}


@pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"recordings of other machines are not beside this checkout: {FOLDER}"
)
class TestRecordings:
    @pytest.mark.parametrize("name", sorted(RECORDINGS))
    def test_facts(self, name: str) -> None:
        """Counts, domains and kind of published pastes."""
        (host,) = topo_m.read((FOLDER / f"{name}.txt").read_bytes(), name)
        gpus, nics, domains, kind, sentence = RECORDINGS[name]
        assert (len(host.gpus), len(host.nics), host.domains, host.nvlink_kind) == (gpus, nics, domains, kind)
        assert sentence in told(host)

    def test_every_recording_is_checked(self) -> None:
        """A recording that is added must be added here."""
        assert {path.stem for path in FOLDER.glob("topo_*.txt")} == set(RECORDINGS)

    def test_numa_and_links(self) -> None:
        """NUMA nodes as published, also numa=off and SNC; links of a cube mesh add up to six."""
        numa = {
            "topo_dgxa100_mlx5_header_truncated": [3, 3, 1, 1, 7, 7, 5, 5],
            "topo_azure_nc96ads_a100pcie_x4": [0, 1, 2, 3],
            "topo_h100x8_roce_numaoff_gluedcells": [0] * 8,
            "topo_8gpu_nv18_9nic_4numa_truncated": [0, 0, 0, 1, 2, 2, None, None],
            "topo_h100x4_nv6_mesh_4nic": [3, 1, 7, 5],
        }
        for name, nodes in numa.items():
            (host,) = topo_m.read((FOLDER / f"{name}.txt").read_bytes(), name)
            assert [gpu.numa for gpu in host.gpus] == nodes, name
        (cube,) = topo_m.read((FOLDER / "topo_dgx1v_4ib_msccl.txt").read_bytes(), "dgx1")
        assert [gpu.nvlinks for gpu in cube.gpus] == [6] * 8
        (four,) = topo_m.read((FOLDER / "topo_aws_p3_8xl_v100x4.txt").read_bytes(), "p3")
        assert [gpu.nvlinks for gpu in four.gpus] == [4, 4, 5, 5]
