"""Asking NVML in a child process: it may hang, crash, or say no; we neither hang nor lose its answers."""

import time

import pytest

from planner.base import BadInput
from probes.base.command import Output
from probes.nvml import ask as nvml
from probes.nvml.ask import NvmlUnusableError, ask_nvml
from tests.probes.conftest import Install, ReadNvml, faults
from tests.probes.fake_nvml.machines import Profile, bare, switched


@pytest.mark.parametrize(
    ("how", "said"), [("hang", "NVML did not answer within 2 s"), ("crash", "NVML crashed (SIGSEGV)")]
)
def test_gpu_that_takes_nvml_down(read_nvml: ReadNvml, how: str, said: str) -> None:
    """Asked again without it: the rest is reported, and the GPU is named."""
    facts = read_nvml(switched("NVIDIA H100 80GB HBM3", 18) | {"gpu.5.mig": how}, timeout_seconds=2)
    assert (len(facts.gpus), facts.domains) == (8, ((0, 1, 2, 3, 4, 6, 7), (5,)))
    assert faults(facts) == {5: (f"{said} when asked about it: the GPU may be hung",)}


@pytest.mark.parametrize(
    ("profile", "where"), [({"init": "hang"}, "nvmlInit"), ({"count": "hang"}, "nvmlDeviceGetCount")]
)
def test_nvml_that_hangs_is_left(install_nvml: Install, profile: Profile, where: str) -> None:
    """One line that says where, in about the time limit."""
    install_nvml(bare("NVIDIA L40S", 1) | profile)
    start = time.monotonic()
    with pytest.raises(BadInput, match=rf"^NVML did not answer within 4 s at {where}: a GPU may be hung; "):
        ask_nvml(4)  # in which a busy machine has started the process that asks
    assert time.monotonic() - start < 12


def test_more_hung_gpus_than_we_wait_for(install_nvml: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not asked for ever: all that were found hung are named."""
    monkeypatch.setattr(nvml, "MOST_SICK_GPUS", 1)
    install_nvml(bare("NVIDIA L40S", 4) | {"gpu.*.mig": "hang"})
    with pytest.raises(BadInput, match=r"at GPU 1 \(and before at GPU 0\): a GPU may be hung"):
        ask_nvml(1)


def test_pairs_that_hang(read_nvml: ReadNvml) -> None:
    """The GPUs are known; what pairs would have told is said to be missing."""
    facts = read_nvml(bare("NVIDIA L40S", 2) | {"pair.0.1.ancestor": "hang"}, timeout_seconds=2)
    assert (len(facts.gpus), dict(facts.gpu_paths)) == (2, {})
    assert facts.warnings == (
        (
            "NVML did not answer within 2 s at pairs of GPUs: "
            "PCIe distances and peer access between GPUs are not known"
        ),
    )


def test_half_a_line_of_a_killed_process_is_dropped() -> None:
    """What came whole before it counts."""
    assert nvml._lines(Output('{"asking": "nvmlInit"}\n{"gpu": {"ind', None, "killed")) == [
        {"asking": "nvmlInit"}
    ]


def test_a_fault_of_our_own_is_no_bad_input() -> None:
    """A traceback in the process that asks stays one."""
    with pytest.raises(RuntimeError, match="KeyError"):
        nvml._lines(Output("", 1, "ended with exit code 1: KeyError"))


def test_library_and_driver_of_two_versions(install_nvml: Install) -> None:
    """The code is kept for whoever words the advice."""
    install_nvml({"init": "!18"})
    with pytest.raises(
        NvmlUnusableError, match="the NVML library and the kernel driver are of different versions"
    ) as fault:
        ask_nvml()
    assert fault.value.code == 18
