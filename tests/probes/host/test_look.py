"""One host probed as a whole: NVML through the fake library, PCI and adapters through a made-up tree."""

from pathlib import Path

import pytest

from planner.base import BadInput
from probes.host.look import probe_host
from tests.probes.conftest import Install
from tests.probes.fake_nvml.machines import Profile, bare, pci, switched
from tests.probes.fake_sysfs import FakeHost, fake_host, switched_pci

H100 = "NVIDIA H100 80GB HBM3"


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return fake_host(tmp_path / "host")


def test_eight_gpus_with_an_adapter_each(host: FakeHost, install_nvml: Install) -> None:
    """NVLink from NVML, adapters and their distance from sysfs: PIX below the same PCIe switch, NODE on the
    same socket, SYS across.
    """
    switched_pci(host)
    install_nvml(switched(H100, 18))
    facts = probe_host(host.root / "sys")
    assert (facts.host, facts.platform, facts.kind, facts.evidence) == (
        "node7",
        "Example Systems GX-8",
        "probe",
        "read",
    )
    assert (facts.domains, facts.nvlink_kind) == ((tuple(range(8)),), "switch")
    assert [(nic.name, nic.rate_bytes_per_s, nic.up) for nic in facts.nics] == [
        (f"mlx5_{index}", 50e9, True) for index in range(8)
    ]
    assert [facts.nic_paths[0, nic] for nic in range(8)] == [
        "PIX",
        "PIX",
        "NODE",
        "NODE",
        "SYS",
        "SYS",
        "SYS",
        "SYS",
    ]
    assert [facts.nic_paths[6, nic] for nic in (0, 4, 6, 7)] == ["SYS", "NODE", "PIX", "PIX"]
    assert facts.warnings == ()


def test_the_folder_above_sys_will_do(host: FakeHost, install_nvml: Install) -> None:
    """`sysfs_root` may be the folder that holds sys and proc."""
    switched_pci(host, 2)
    install_nvml(bare(H100, 2))
    assert probe_host(host.root) == probe_host(host.root / "sys")


def test_switches_below_a_switch_and_a_shared_root_complex(host: FakeHost, install_nvml: Install) -> None:
    """PXB through several bridges of one root port, PHB where only the root complex is shared."""
    install_nvml(bare(H100, 1))
    host.device(f"pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0/0000:19:00.0/{pci(0)}")
    host.adapter("mlx5_0", "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:40:00.0")
    host.adapter("mlx5_1", "pci0000:15/0000:15:02.0/0000:41:00.0")
    assert dict(probe_host(host.root).nic_paths) == {(0, 0): "PXB", (0, 1): "PHB"}


@pytest.mark.parametrize(("gpu_numa", "nic_numa", "path"), [(1, 1, "NODE"), (0, 1, "SYS"), (-1, 0, None)])
def test_flat_pci_of_a_virtual_machine(
    host: FakeHost, install_nvml: Install, gpu_numa: int, nic_numa: int, path: str | None
) -> None:
    """Every device has a root complex of its own: NUMA nodes tell, or nothing does and that is said."""
    install_nvml(
        {key: value for key, value in bare(H100, 1).items() if "numa" not in key}
        | {"gpu.*.virtualization": 1, "gpu.0.pci": "0001:00:00.0"}
    )
    host.device("LNXSYSTM:00/VMBUS:00/aa-01/pci0001:00/0001:00:00.0", numa=gpu_numa)
    host.adapter("mlx5_ib0", "LNXSYSTM:00/VMBUS:00/bb-02/pci0101:00/0101:00:00.0", numa=nic_numa)
    facts = probe_host(host.root)
    assert facts.gpus[0].numa == (None if gpu_numa < 0 else gpu_numa)
    assert facts.nic_paths.get((0, 0)) == path
    said = "how near mlx5_ib0 is to some GPUs: neither PCI bridges nor NUMA nodes tell"
    assert (said in facts.unknown) == (path is None)


def test_one_root_complex_of_a_virtual_machine_is_no_nearness(host: FakeHost, install_nvml: Install) -> None:
    """A virtual machine that puts every device below one root complex does not say PHB."""
    install_nvml(
        {key: value for key, value in bare(H100, 1).items() if "numa" not in key}
        | {"gpu.*.virtualization": 1}
    )
    host.device(f"pci0000:00/{pci(0)}")
    host.adapter("mlx5_0", "pci0000:00/0000:00:07.0")
    assert probe_host(host.root).nic_paths == {}


def test_numa_node_of_nvml_comes_first(host: FakeHost, install_nvml: Install) -> None:
    """The driver knows it where the firmware tells the kernel -1.

    Sysfs fills in where the driver does not.
    """
    install_nvml(bare(H100, 2) | {"gpu.0.numa_mask": 4, "gpu.1.numa_mask": "!3"})
    host.device(f"pci0000:15/{pci(0)}", numa=-1)
    host.device(f"pci0000:15/{pci(1)}", numa=1)
    assert [gpu.numa for gpu in probe_host(host.root).gpus] == [2, 1]


def test_fewer_gpus_than_the_kernel_lists(host: FakeHost, install_nvml: Install) -> None:
    """A cgroup that shows one GPU of eight must not pass for a machine of one."""
    switched_pci(host)
    install_nvml(bare(H100, 1))
    assert (
        probe_host(host.root)
        .warnings[-1]
        .startswith(
            "PCI lists 8 NVIDIA GPUs and NVML shows 1: this container, cgroup or job sees a part of them"
        )
    )


def test_machine_is_of_the_running_kernel(tmp_path: Path, install_nvml: Install) -> None:
    """Two hosts of one name have different machines; the same host has the same one each time."""
    install_nvml(bare(H100, 1))
    one, two = (
        fake_host(tmp_path / "one", "localhost", "a" * 36),
        fake_host(tmp_path / "two", "localhost", "b" * 36),
    )
    seen = [probe_host(host.root).machine for host in (one, two, one)]
    assert seen[0] == seen[2] != seen[1]
    assert seen[0] is not None
    assert len(seen[0]) == 16


def test_no_nvml(host: FakeHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One line: what was tried, and what to do instead."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    with pytest.raises(BadInput) as fault:
        probe_host(host.root)
    if "code" in str(fault.value):
        pytest.skip("this machine has an NVML of its own")
    assert str(fault.value) == (
        "no GPU that can be asked: libnvidia-ml.so.1 is not found "
        "(no kernel driver: /proc/driver/nvidia is absent; PCI lists 0 NVIDIA GPUs); "
        "run moeplan probe where the GPUs are, or give 'moeplan import' a paste of 'nvidia-smi topo -m' "
        "from there, or plan for a preset ('moeplan topology list')"
    )


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        (
            {"init": "!9"},
            (
                r"^no GPU that can be asked: NVML is installed and the driver is not loaded "
                r".*modprobe nvidia.*'moeplan import'"
            ),
        ),
        (
            {"init": "!18"},
            (
                r"^the NVML library and the kernel driver are of different versions "
                r"\(kernel driver 570\.86\.15;.*reboot after a driver upgrade"
            ),
        ),
        ({"init": "!4"}, r"^NVML gives no permission to ask the GPUs .*/dev/nvidia\*"),
        ({"init": "!999"}, r"^no GPU that can be asked: NVML says unknown error \(code 999; "),
        ({"count": 0}, r"^the NVIDIA driver is loaded and shows no GPU \(PCI lists 0 NVIDIA GPUs\)"),
    ],
)
def test_nvml_that_says_no(host: FakeHost, install_nvml: Install, profile: Profile, said: str) -> None:
    """Each reason has its own remedy, in one line."""
    host.file(
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Release Build",
    )
    install_nvml(profile)
    with pytest.raises(BadInput, match=said) as fault:
        probe_host(host.root)
    assert "\n" not in str(fault.value)
