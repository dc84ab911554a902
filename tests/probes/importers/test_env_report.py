"""GPU names in the environment reports of bug forms, beside the matrix of the same report."""

import pytest

from planner.base import BadInput
from probes.importers import env_report
from probes.importers.registry import read_facts
from probes.machine.assemble import assemble
from probes.machine.hints import Hints

MATRIX = (
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV18\tPIX\t0-31\t0\nGPU1\tNV18\t X \tPIX\t0-31\t0\n"
)
SGLANG = "CUDA available: True\nGPU 0,1: NVIDIA H100 80GB HBM3\nNVIDIA Topology: \n"
TORCH = "GPU models and configuration: \nGPU 0: NVIDIA H100 80GB HBM3\nGPU 1: NVIDIA H100 80GB HBM3\n\n"


def facts_of(text: str) -> tuple[str | None, ...]:
    (facts,) = env_report.read(text.encode(), "env.txt")
    return tuple(gpu.name for gpu in facts.gpus)


@pytest.mark.parametrize(
    "text", [SGLANG, TORCH, TORCH.replace("\n", "\r\n"), TORCH.replace("GPU ", "> GPU ")]
)
def test_names_are_read(text: str) -> None:
    """One line for all GPUs, or one each; as pasted."""
    assert env_report.recognise(text.encode(), "env.txt")
    assert facts_of(text) == ("NVIDIA H100 80GB HBM3",) * 2


@pytest.mark.parametrize("text", [SGLANG, TORCH])
def test_a_report_with_its_matrix_is_a_machine(text: str) -> None:
    """Nothing but the NIC's rate is missing."""
    found = assemble(read_facts((text + MATRIX).encode(), "env.txt"), Hints(nic_bytes_per_s=50e9))
    assert found.topology is not None
    assert found.topology.gpus[0].model.name == "H100-SXM-80GB"
    assert (found.gpus, found.hosts) == (2, ("",))


def test_what_is_no_report() -> None:
    """`nvidia-smi -L` has an importer of its own; a GPU of no name is none."""
    assert not env_report.recognise(b"GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000)\n", "list.txt")
    assert not env_report.recognise(b"GPU 0: out of memory\n", "log.txt")


def test_two_reports_in_one_are_refused() -> None:
    """A GPU cannot be two."""
    with pytest.raises(BadInput, match="GPU 0 is NVIDIA H100 80GB HBM3 and NVIDIA B200"):
        facts_of(SGLANG + "GPU 0: NVIDIA B200\n")


def test_a_gap_is_said() -> None:
    """The report shows GPU 3 alone."""
    (facts,) = env_report.read(b"GPU 3: NVIDIA B200\n", "env.txt")
    assert "names GPUs 3 only" in facts.unknown[0]
