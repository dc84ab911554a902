"""GPU names as drivers and people write them, and what the table says of the models."""

import pytest

from probes.machine.assemble import assemble
from probes.machine.gpu_names import GPUS, links_of_gpu, named_gpu, payload_bytes_per_s
from probes.machine.hints import Hints
from tests.probes.machine.told import H100, matrix, topology


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
            ("NVIDIA H100 PCIe", "H100-PCIe-80GB"),
            ("NVIDIA H100 NVL", "H100-NVL-94GB"),
            ("NVIDIA H200 NVL", "H200-NVL-141GB"),
            ("NVIDIA GH200 480GB", "GH200-96GB"),
            ("NVIDIA GH200 144G HBM3e", "GH200-144GB"),
            ("NVIDIA A100-PCIE-40GB", "A100-PCIe-40GB"),
            ("Tesla V100-SXM2-16GB", "V100-SXM2-16GB"),
            ("Tesla V100-PCIE-32GB", "V100-PCIe-32GB"),
            ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX-PRO-6000-Workstation-96GB"),
            ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX-PRO-6000-Max-Q-96GB"),
            ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000-96GB"),
            ("NVIDIA RTX A6000", "RTX-A6000-48GB"),
            ("NVIDIA RTX 6000 Ada Generation", "RTX-6000-Ada-48GB"),
            ("Quadro RTX 8000", "Quadro-RTX-8000-48GB"),
            ("NVIDIA TITAN V", "Titan-V-12GB"),
            ("NVIDIA L40", "L40-48GB"),
            ("NVIDIA L4", "L4-24GB"),
            ("Tesla T4", "T4-16GB"),
            ("NVIDIA A40", "A40-48GB"),
            ("NVIDIA A10", "A10-24GB"),
            ("NVIDIA A30", "A30-24GB"),
            ("NVIDIA A2", "A2-16GB"),
            ("NVIDIA A16", "A16-16GB"),
            ("NVIDIA A800 80GB PCIe", "A800-PCIe-80GB"),
            ("NVIDIA H800 PCIe", "H800-PCIe-80GB"),
            ("NVIDIA GeForce RTX 4090", "GeForce-RTX-4090-24GB"),
            ("NVIDIA GeForce RTX 5090", "GeForce-RTX-5090-32GB"),
            ("NVIDIA GB10", "GB10-128GB"),
            ("NVIDIA RTX PRO 6000 Blackwell Serv...", "RTX-PRO-6000-96GB"),
            ("NVIDIA RTX PRO 6000 Blac...", None),
            ("NVIDIA H100 96GB HBM3", None),
            (None, None),
        ],
    )
    def test_product_names(self, name: str | None, model: str | None) -> None:
        """A name that is not in the table is no model that looks like it."""
        links = links_of_gpu(name)
        assert (links.model if links else None) == model

    def test_table_and_catalogue_agree(self) -> None:
        """Every model is in the catalogue, under a name that nobody else has, and its short names are written
        as they are compared.
        """
        names = [name for gpu in GPUS for name in gpu.names]
        assert len(names) == len(set(names))
        for gpu in GPUS:
            assert named_gpu(gpu.model) == gpu
            assert all(links_of_gpu(name) == gpu for name in gpu.names)
            hints = Hints(gpu=gpu.model, nic_bytes_per_s=1e9)
            (node,) = topology(assemble([matrix(1, "NODE")], hints)).nodes
            assert node.gpus[0].name == gpu.model

    def test_payload_of_printed_speeds(self) -> None:
        """Unknown speeds are taken as they are."""
        printed = (26.562e9, 53.125e9, 25.781e9, 25e9, 14.062e9)
        payload = [25e9, 50e9, 25e9, 25e9, 14.062e9]
        assert [payload_bytes_per_s(rate) for rate in printed] == payload
