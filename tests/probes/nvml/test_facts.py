"""Each kind of machine, as the shipped pynvml reads it from a fake NVML library in the child process."""

from itertools import combinations

import pytest

from tests.probes.conftest import ReadNvml, faults
from tests.probes.fake_nvml.machines import bare, dgx_1v, switched, tray, wired

ALL_8 = (tuple(range(8)),)
DEAD_LINKS = {"gpu.2.link.*.state": 0}


@pytest.mark.parametrize(
    ("name", "links", "version", "mbps", "word"),
    [
        ("NVIDIA A100-SXM4-80GB", 12, 4, 25000, "3.0"),
        ("NVIDIA H100 80GB HBM3", 18, 6, 26562, "4.0"),
        ("NVIDIA H800", 8, 6, 26562, "4.0"),
    ],
)
def test_eight_gpus_behind_switches(
    read_nvml: ReadNvml, name: str, links: int, version: int, mbps: int, word: str
) -> None:
    """One domain, the number of links of that model, the rate of a link as it was read, and nothing to
    complain of.
    """
    facts = read_nvml(switched(name, links, version=version, mbps=mbps))
    assert (facts.nvlink_kind, facts.domains, facts.unknown, facts.warnings, faults(facts)) == (
        "switch",
        ALL_8,
        (),
        (),
        {},
    )
    assert {(gpu.name, gpu.nvlinks, gpu.nvlink_bytes_per_s, gpu.nvlink_version) for gpu in facts.gpus} == {
        (name, links, mbps * 1e6, word)
    }
    assert dict(facts.gpu_paths) == dict.fromkeys(combinations(range(8), 2), f"NV{links}")
    assert (facts.evidence, facts.source) == ("read", "NVML (driver 570.86.15)")


def test_a_gpu_as_nvml_tells_it(read_nvml: ReadNvml) -> None:
    """PCI address as sysfs writes it, NUMA node, memory, and PCIe at the generation that the link has when it
    is not idle.
    """
    gpu = read_nvml(
        bare("NVIDIA L40S", 2, memory=48 << 30) | {"gpu.0.pci": "0008:1B:02.0", "gpu.0.numa_mask": 1 << 33}
    ).gpus[0]
    assert (gpu.pci, gpu.uuid, gpu.numa, gpu.memory_bytes) == (
        "0008:1b:02.0",
        "GPU-00000000-0000-4000-8000-000000000000",
        33,
        48 << 30,
    )
    assert (gpu.nvlinks, gpu.pcie_bytes_per_s, gpu.pcie_full_bytes_per_s, gpu.fabric, gpu.faults) == (
        0,
        64e9,
        64e9,
        None,
        (),
    )


def test_pcie_only(read_nvml: ReadNvml) -> None:
    """No NVLink is not a fault; the PCIe distances are given.

    GPUs without peer access are named with the reason.
    """
    facts = read_nvml(bare("NVIDIA L40S", 4) | {"pair.*.*.p2p_read": 5, "pair.0.1.p2p_read": 0})
    assert (facts.nvlink_kind, facts.domains, faults(facts), facts.unknown) == (
        "none",
        ((0,), (1,), (2,), (3,)),
        {},
        (),
    )
    assert facts.gpu_paths[0, 1] == "NODE"
    assert facts.gpu_paths[0, 3] == "SYS"
    assert facts.warnings == (
        (
            "no direct peer access between GPUs 0-2, 0-3, 1-2, 1-3, 2-3 (not supported): "
            "their traffic goes through host memory"
        ),
    )


def test_cube_mesh(read_nvml: ReadNvml) -> None:
    """DGX-1V: one domain, no switch, one or two links between neighbours, PCIe to the others."""
    facts = read_nvml(dgx_1v())
    assert (facts.nvlink_kind, facts.domains, faults(facts)) == ("mesh", ALL_8, {})
    assert {gpu.nvlinks for gpu in facts.gpus} == {6}
    assert [facts.gpu_paths[0, other] for other in range(1, 8)] == [
        "NV1",
        "NV1",
        "NV2",
        "NV2",
        "SYS",
        "SYS",
        "SYS",
    ]


def test_bridge_pairs_and_a_bare_third(read_nvml: ReadNvml) -> None:
    """Two bridged pairs of PCIe cards; the fifth has no bridge and that is no fault."""
    facts = read_nvml(wired("NVIDIA A100 80GB PCIe", {(0, 1): 12, (2, 3): 12}, 5, version=4, mbps=25000))
    assert (facts.nvlink_kind, facts.domains, faults(facts)) == ("bridge", ((0, 1), (2, 3), (4,)), {})
    assert (facts.gpu_paths[0, 1], facts.gpu_paths[2, 3]) == ("NV12", "NV12")


def test_mig(read_nvml: ReadNvml) -> None:
    """A GPU in MIG mode is named and stands alone; its missing peer access is not a fault of its siblings."""
    facts = read_nvml(
        switched("NVIDIA A100-SXM4-40GB", 12, version=4, mbps=25000)
        | {"gpu.6.mig": 1, "pair.6.7.p2p_read": 5}
    )
    assert facts.domains == ((0, 1, 2, 3, 4, 5, 7), (6,))
    assert list(faults(facts)) == [6]
    assert faults(facts)[6][0].startswith("MIG is on")
    assert (len(faults(facts)[6]), facts.warnings) == (1, ())


def test_old_driver(read_nvml: ReadNvml) -> None:
    """Functions that are not there are said to be missing.

    What can be read is read: the far ends still match GPUs by PCI address.
    """
    facts = read_nvml(dgx_1v(), driver="old")
    assert (facts.nvlink_kind, facts.domains, faults(facts)) == ("mesh", ALL_8, {})
    assert facts.gpus[0].nvlink_bytes_per_s is None
    assert (
        "NVML does not give numa of GPUs 0, 1, 2, 3, 4, 5, 6, 7: not in this driver, which is too old"
        in facts.unknown
    )


@pytest.mark.parametrize(
    ("key", "code", "why"),
    [
        ("handle", 15, "the GPU is lost"),
        ("pci", 15, "the GPU is lost"),
        ("uuid", 16, "the GPU needs a reset"),
        ("handle", 4, "no permission"),
    ],
)
def test_gpu_that_cannot_be_asked(read_nvml: ReadNvml, key: str, code: int, why: str) -> None:
    """It is counted and named; the other seven are whole."""
    facts = read_nvml(switched("NVIDIA H100 80GB HBM3", 18) | {f"gpu.3.{key}": f"!{code}"})
    assert facts.domains == ((0, 1, 2, 4, 5, 6, 7), (3,))
    assert list(faults(facts)) == [3]
    assert faults(facts)[3][0].startswith(why)
    assert facts.gpus[3].nvlinks is None


def test_narrow_pcie_and_reduced_nvlink(read_nvml: ReadNvml) -> None:
    """Width below what card and slot allow is a fault.

    So is NVLink bandwidth cut by policy, and links of several speeds.
    """
    facts = read_nvml(
        switched("NVIDIA B200", 18, version=7, mbps=53125)
        | {"gpu.4.pcie.width": 8, "gpu.6.bw_mode": 3, "gpu.7.link.1.mbps": 26562}
    )
    assert (facts.gpus[4].pcie_bytes_per_s, facts.gpus[4].pcie_full_bytes_per_s) == (32e9, 64e9)
    assert facts.gpus[7].nvlink_bytes_per_s == 26562e6
    assert faults(facts) == {
        4: ("PCIe runs x8, card and slot allow x16",),
        6: ("NVLink bandwidth is set to HALF by policy",),
        7: ("its NVLinks run at different speeds: 26562, 53125 MB/s; the lowest is taken for all",),
    }


def test_the_profiles_are_what_they_claim() -> None:
    """Six links a GPU in the cube mesh; 72 different UUIDs in a rack."""
    profile = dgx_1v()
    assert [profile[f"gpu.{gpu}.links"] for gpu in range(8)] == [6] * 8
    assert len({tray(host)[f"gpu.{gpu}.uuid"] for host in range(18) for gpu in range(4)}) == 72
