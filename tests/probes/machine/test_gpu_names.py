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
