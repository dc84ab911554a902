"""RDMA adapters out of sysfs: states, rates, places, and what slows them."""

from pathlib import Path

import pytest

from planner.base import BadInput
from probes.base.facts import HostFacts
from probes.host.rdma import read_rdma
from tests.probes.sysfs_files import Adapter, write


def acs(control: int) -> bytes:
    """PCI configuration space with another capability before ACS, whose control register is `control`."""
    config = bytearray(4096)
    config[0x100:0x104] = (0x0001 | 1 << 16 | 0x140 << 20).to_bytes(4, "little")
    config[0x140:0x144] = (0x000D | 1 << 16).to_bytes(4, "little")
    config[0x146:0x148] = control.to_bytes(2, "little")
    return bytes(config)


def read(root: Path, *adapters: Adapter, more: dict[str, str | bytes] | None = None) -> HostFacts:
    return read_rdma(write(root, list(adapters), more))


def test_adapter_has_rate_state_place_and_guid(tmp_path: Path) -> None:
    """Everything of one active port.

    The PCI path is what affinity is computed from, the GUID what ibnetdiscover shows.
    """
    facts = read(tmp_path, Adapter("mlx5_0"))
    (nic,) = facts.nics
    assert (nic.name, nic.device, nic.rate_bytes_per_s, nic.link_layer, nic.up, nic.numa, nic.model) == (
        "mlx5_0",
        None,
        50e9,
        "InfiniBand",
        True,
        0,
        "MT4129",
    )
    assert nic.pci == "0000:1b:00.0"
    assert nic.pci_path == "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:1b:00.0"
    assert nic.guid == "000000000002001b"
    assert nic.card == "000000000001001b"
    assert nic.faults == ()
    assert facts.evidence == "read"


def test_sys_itself_may_be_the_root(tmp_path: Path) -> None:
    """`--sysfs-root /host/sys` as containers mount it."""
    write(tmp_path, [Adapter("mlx5_0")])
    assert [nic.pci for nic in read_rdma(tmp_path / "sys").nics] == ["0000:1b:00.0"]


def test_names_are_in_natural_order(tmp_path: Path) -> None:
    """mlx5_2 before mlx5_10: index and rail go by this order."""
    facts = read(tmp_path, Adapter("mlx5_10", "0000:2b:00.0"), Adapter("mlx5_2", "0000:1b:00.0"))
    assert [nic.name for nic in facts.nics] == ["mlx5_2", "mlx5_10"]


def test_unknown_numa_is_none(tmp_path: Path) -> None:
    """The kernel's -1 is not a node."""
    assert read(tmp_path, Adapter("mlx5_0", numa="-1")).nics[0].numa is None


def test_port_that_is_down_has_no_rate(tmp_path: Path) -> None:
    """Its fault says why."""
    nic = read(tmp_path, Adapter("mlx5_0", state="1: DOWN", rate="10 Gb/sec (4X SDR)")).nics[0]
    assert (nic.up, nic.rate_bytes_per_s) == (False, None)
    assert nic.faults == ("mlx5_0: the port is not active (Down, Polling)",)


def test_two_ports_are_two_nics(tmp_path: Path) -> None:
    """A dual-port card: names with the port's number, one device, one card."""
    nics = read(tmp_path, Adapter("mlx5_0", ports=2)).nics
    assert [(nic.name, nic.device) for nic in nics] == [("mlx5_0:1", "mlx5_0"), ("mlx5_0:2", "mlx5_0")]
    assert len({nic.card for nic in nics}) == 1


@pytest.mark.parametrize(
    ("adapter", "fault"),
    [
        (Adapter("mlx5_0", widths=("8", "16")), "mlx5_0: PCIe width is 8 lanes where card and slot allow 16"),
        (
            Adapter("mlx5_0", speeds=("16.0 GT/s PCIe", "32.0 GT/s PCIe")),
            "mlx5_0: PCIe speed is 16 GT/s where card and slot allow 32",
        ),
        (
            Adapter("mlx5_0", speeds=("16.0 GT/s PCIe", "16.0 GT/s PCIe")),
            "mlx5_0: its PCIe link (16 GT/s x16 = 256 Gb/s) is slower than its port (400 Gb/s)",
        ),
    ],
)
def test_slow_pcie_link_is_a_fault(tmp_path: Path, adapter: Adapter, fault: str) -> None:
    """Narrow, slow, or slower than the network port."""
    assert fault in read(tmp_path, adapter).nics[0].faults


def test_card_faster_than_its_slot_is_no_fault(tmp_path: Path) -> None:
    """A gen 5 card in a gen 4 slot runs as it should."""
    adapter = Adapter("mlx5_0", rate="200 Gb/sec (4X HDR)", speeds=("16.0 GT/s PCIe", "32.0 GT/s PCIe"))
    slot = "/".join(adapter.folder.split("/")[:-1])
    assert read(tmp_path, adapter, more={f"{slot}/max_link_speed": "16.0 GT/s PCIe"}).nics[0].faults == ()


def test_unknown_link_speed_is_no_fault(tmp_path: Path) -> None:
    """Virtual machines say 'Unknown', 0 or 255."""
    adapter = Adapter("mlx5_0", speeds=("Unknown", "Unknown"), widths=("0", "255"))
    assert read(tmp_path, adapter).nics[0].faults == ()


def test_acs_redirect_at_a_switch_is_a_fault(tmp_path: Path) -> None:
    """Redirection at a bridge between root port and card.

    At the root port it costs nothing that the root complex would not.
    """
    adapter = Adapter("mlx5_0")
    up = adapter.folder.split("/")[:-1]
    configs: dict[str, str | bytes] = {
        f"{'/'.join(up)}/config": acs(0x1C),
        f"{'/'.join(up[:-1])}/config": acs(0),
    }
    facts = read(tmp_path, adapter, more=configs)
    assert facts.nics[0].faults == (
        "mlx5_0: ACS of PCIe bridge 0000:17:00.0 sends peer-to-peer traffic through the root complex",
    )
    assert not any("ACS" in sentence for sentence in facts.unknown)


def test_acs_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    """Without root the kernel gives 64 bytes."""
    adapter = Adapter("mlx5_0")
    parent = "/".join(adapter.folder.split("/")[:-1])
    assert any(
        "needs root" in sentence
        for sentence in read(tmp_path, adapter, more={f"{parent}/config": acs(0x1C)[:64]}).unknown
    )


@pytest.mark.parametrize(("kind", "said"), [("DMA-FQ", True), ("identity", False)])
def test_translating_iommu_is_a_warning(tmp_path: Path, kind: str, said: bool) -> None:
    """Only where it translates; passing through is as fast as none."""
    facts = read(tmp_path, Adapter("mlx5_0", more={"iommu_group/type": kind}))
    assert any("IOMMU" in warning for warning in facts.warnings) == said


def test_peer_memory_module_means_gpudirect(tmp_path: Path) -> None:
    """A loaded module is a yes; no module is not a no."""
    write(tmp_path / "with", [Adapter("mlx5_0")], {"sys/module/nvidia_peermem/version": "1"})
    assert read_rdma(tmp_path / "with").nics[0].gpudirect is True
    facts = read(
        tmp_path / "without",
        Adapter("mlx5_0"),
        more={"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module"},
    )
    assert facts.nics[0].gpudirect is None
    assert any("open kernel module, which offers DMA-BUF" in sentence for sentence in facts.unknown)


def test_peer_memory_module_says_nothing_of_another_driver(tmp_path: Path) -> None:
    """nvidia_peermem serves mlx5; EFA does GPUDirect on its own."""
    facts = read(
        tmp_path,
        Adapter("rdmap0", driver="efa", layer="Unknown"),
        more={"sys/module/nvidia_peermem/version": "1"},
    )
    assert facts.nics[0].gpudirect is None
    assert facts.nics[0].link_layer is None


def test_virtual_function_is_not_for_expert_traffic(tmp_path: Path) -> None:
    """It shares the port of its physical function: counting both would double the rate."""
    virtual = Adapter("mlx5_9", "0000:1b:00.1")
    write(tmp_path, [Adapter("mlx5_0"), virtual])
    (tmp_path / virtual.folder / "physfn").symlink_to("../0000:1b:00.0")
    assert [nic.compute for nic in read_rdma(tmp_path).nics] == [None, False]


def test_machine_without_adapters_says_so(tmp_path: Path) -> None:
    """No NICs, a sentence, no error; a root that is no directory is one."""
    facts = read_rdma(tmp_path)
    assert facts.nics == ()
    assert "no RDMA adapter" in facts.unknown[0]
    with pytest.raises(BadInput, match="not a directory"):
        read_rdma(tmp_path / "absent")


def test_links_do_not_leave_the_root(tmp_path: Path) -> None:
    """A link to the real machine, by '..' or an absolute path, ends inside the injected root."""
    outside = tmp_path / "outside" / "sys/class/infiniband/mlx5_0/ports/1"
    outside.mkdir(parents=True)
    (outside / "state").write_text("4: ACTIVE")
    place = tmp_path / "root" / "sys/class/infiniband"
    place.mkdir(parents=True)
    (place / "mlx5_0").symlink_to(tmp_path / "outside/sys/class/infiniband/mlx5_0")
    (place / "mlx5_1").symlink_to("../../../../outside/sys/class/infiniband/mlx5_0")
    (place / "mlx5_2").symlink_to("mlx5_2")
    facts = read_rdma(tmp_path / "root")
    assert [nic.up for nic in facts.nics] == [None, None, None]
    assert sum("no ports" in sentence for sentence in facts.unknown) == 3
