"""`nvidia-smi topo -m`: whole tables, and what is refused."""

import time

import pytest

from planner.base import BadInput
from probes.importers import topo_m
from tests.probes.importers.topo_pastes import BRIDGED, essence, read, told


class TestWhole:
    def test_counts_domains_paths_numa_and_device_names(self) -> None:
        """Everything that the table says, and nothing to complain of."""
        host = read(BRIDGED)
        assert [nic.device for nic in host.nics] == ["mlx5_0", "mlx5_3"]
        assert host.domains == ((0, 1), (2, 3))
        assert host.nvlink_kind == "bridge"
        assert host.gpu_paths[0, 1] == "NV4"
        assert host.nic_paths[1, 0] == "NODE"
        assert [gpu.numa for gpu in host.gpus] == [0, 0, 1, 1]
        assert told(host) == ""

    def test_old_driver_says_soc_and_names_devices(self) -> None:
        """Names in the header are kept in their order, SOC is SYS, and there is no NUMA column to read."""
        host = read(
            "\tGPU0\tGPU1\tmlx4_1\tmlx4_0\tCPU Affinity\n"
            "GPU0\t X \tSOC\tPHB\tSOC\t0-5\nGPU1\tSOC\t X \tSOC\tPHB\t6-11\n"
        )
        assert [nic.name for nic in host.nics] == ["mlx4_1", "mlx4_0"]
        assert host.gpu_paths == {(0, 1): "SYS"}
        assert [gpu.numa for gpu in host.gpus] == [None, None]

    def test_list_of_numa_nodes_gives_the_first(self) -> None:
        """On Grace the list holds the GPU's own memory too."""
        host = read("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-71\t1,3-9,11-17\t\t2\n")
        assert host.gpus[0].numa == 1
        assert "several NUMA nodes" in told(host)

    def test_degraded_gpu_is_named(self) -> None:
        """A GPU without links beside seven with all of theirs is a fault."""
        rows = [
            " ".join(
                [
                    f"GPU{i}",
                    *("X" if i == j else "NODE" if 2 in {i, j} else "NV18" for j in range(8)),
                    "0-9",
                    "0",
                ]
            )
            for i in range(8)
        ]
        host = read(
            " "
            + " ".join(f"GPU{i}" for i in range(8))
            + " CPU Affinity NUMA Affinity\n"
            + "\n".join(rows)
            + "\n"
        )
        assert host.domains == ((0, 1, 3, 4, 5, 6, 7), (2,))
        assert host.nvlink_kind == "switch"
        assert "GPU 2 has no active NVLink" in told(host)


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "part"),
        [
            ("\tGPU0\tGPU1\tCPU Affinity\n", "no row"),
            (" \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n", "topo -p2p"),
            ("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tWARP\t0-3\nGPU1\tWARP\t X \t0-3\n", "line 2: 'WARP'"),
            ("\tGPU0\tGPU1\tCPU Affinity\nGPU999\t X \tPIX\t0-3\n", "GPUs"),
        ],
    )
    def test_one_line_that_names_the_place(self, text: str, part: str) -> None:
        """A header alone, another table, a word that is no link, a count that no host has."""
        with pytest.raises(BadInput) as caught:
            read(text)
        assert part in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_other_texts_are_not_recognised(self) -> None:
        """Logs that speak of GPUs are no matrix."""
        for text in (
            b"GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n",
            b"GPU0 temperature 40 C\n",
            b"\0" * 100,
            b"<system></system>",
        ):
            assert not topo_m.recognise(text, "x")

    def test_name_that_only_begins_like_a_gpu(self) -> None:
        """'GPU_0' has no number: its row is not one."""
        assert essence(read(BRIDGED.replace("\nGPU2\t", "\nGPU_2\t")))[:4] == essence(read(BRIDGED))[:4]

    def test_large_files_end_quickly(self) -> None:
        """Sixty megabytes of near misses are looked at for no more than a moment."""
        content = b"GPU1\tGPU2 GPU3 NV18 SYSX PIX 0-15,16\n" * (60_000_000 // 38)
        start = time.monotonic()
        topo_m.recognise(content, "x")
        assert time.monotonic() - start < 5
