"""The table of plain `nvidia-smi`, and products that a text names somewhere."""

import pytest

from planner.base import BadInput
from probes.base.facts import HostFacts
from probes.importers import smi_table
from probes.importers.product_words import product_in
from probes.importers.registry import read_facts
from probes.machine.gpu_names import links_of_gpu
from tests.probes.importers.smi_texts import listed, matrix

HEAD = "| NVIDIA-SMI 550.54.15     Driver Version: 550.54.15     CUDA Version: 12.4 |\n|===+===+===|\n"


def row(index: int, name: str, memory: int = 81559, mig: str = "Disabled") -> str:
    return (
        f"|   {index}  {name:<28}On  |   00000000:{index + 1}B:00.0 Off |                    0 |\n"
        f"| N/A   30C    P0             70W /  700W |       1MiB /  {memory}MiB |      0%      Default |\n"
        f"|                                         |                        |             {mig} |\n"
        "+-----------------------------------------+------------------------+----------------------+\n"
    )


def read(text: str) -> HostFacts:
    assert smi_table.recognise(text.encode(), "x")
    (host,) = smi_table.read(text.encode(), "x")
    return host


def test_names_addresses_and_memory() -> None:
    """Of each row and the lines below it."""
    host = read(HEAD + row(0, "NVIDIA H100 80GB HBM3") + row(1, "NVIDIA H100 80GB HBM3", mig="Enabled"))
    assert [(gpu.name, gpu.pci, gpu.memory_bytes) for gpu in host.gpus] == [
        ("NVIDIA H100 80GB HBM3", "0000:1b:00.0", 81559 << 20),
        ("NVIDIA H100 80GB HBM3", "0000:2b:00.0", 81559 << 20),
    ]
    assert [len(gpu.faults) for gpu in host.gpus] == [0, 1]


@pytest.mark.parametrize(
    ("cut", "memory", "model"),
    [
        ("Tesla V100-SXM2...", 16160, "NVIDIA V100-SXM2-16GB"),
        ("Tesla V100-SXM2...", 32510, "NVIDIA V100-SXM2-32GB"),
        ("NVIDIA A100-SXM...", 40960, "NVIDIA A100-SXM-40GB"),
        ("NVIDIA A100-SXM...", 81920, "NVIDIA A100-SXM-80GB"),
        ("NVIDIA RTX PRO 6000 Blac...", 97887, None),
    ],
)
def test_a_name_that_the_table_cuts(cut: str, memory: int, model: str | None) -> None:
    """The one model that begins so and has that memory; where there are several it is asked for."""
    host = read(row(0, cut, memory))
    assert host.gpus[0].name == model
    assert ("give 'nvidia-smi -L'" in " ".join(host.unknown)) == (model is None)


def test_rows_that_are_missing_are_said() -> None:
    """A table without its GPU 1; the same index with another address is another host."""
    assert "GPUs 0, 2 only" in read(row(0, "NVIDIA L4") + row(2, "NVIDIA L4")).unknown[0]
    with pytest.raises(BadInput, match="each host"):
        read(row(0, "NVIDIA L4") + row(1, "NVIDIA L4").replace("|   1 ", "|   0 "))


@pytest.mark.parametrize(
    ("text", "product"),
    [
        ("# 2 x 8 NVIDIA H200, new racks", "H200-SXM-141GB"),
        ("DGX with A100-SXM4-80GB", "A100-SXM-80GB"),
        ("the H100 PCIe box", "H100-PCIe-80GB"),
        ("eight NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000-96GB"),
        ("NVIDIA H100", None),
        ("NVIDIA H200 beside NVIDIA B200", None),
        ("NVIDIA A10x and CL4, NVIDIA L4.5", None),
    ],
)
def test_a_product_anywhere_in_the_paste(text: str, product: str | None) -> None:
    """One that can be no other becomes the model of the matrix below it, and is said; others do not."""
    (host,) = read_facts(f"{text}\n\n{matrix(8)}".encode(), "x")
    assert isinstance(host, HostFacts)
    links = links_of_gpu(host.gpus[0].name)
    assert (links.model if links else None) == product
    assert any("taken as the model of all 8 GPUs" in line for line in host.warnings) == (product is not None)


def test_a_tool_that_lists_the_gpus_is_believed_first() -> None:
    """What a comment says beside it is not asked."""
    assert product_in("before: NVIDIA B200\n" + listed()) is None
