"""A made-up tree of what a Linux host shows under /sys and /proc: PCI devices, RDMA adapters, firmware."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FakeHost:
    """`root` holds sys and proc."""

    root: Path

    def file(self, path: str, content: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content + "\n")

    def link(self, path: str, target: str) -> None:
        """Relative, as the kernel's are."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(os.path.relpath(self.root / target, place.parent))

    def device(self, path: str, vendor: str = "0x10de", kind: str = "0x030200", numa: int = -1) -> str:
        """A PCI device at 'pci0000:15/0000:15:01.0/.../0000:1b:00.0', listed under its address."""
        folder, address = f"sys/devices/{path}", path.rpartition("/")[2]
        for name, content in (("vendor", vendor), ("class", kind), ("numa_node", str(numa))):
            self.file(f"{folder}/{name}", content)
        self.link(f"sys/bus/pci/devices/{address}", folder)
        return address

    def adapter(
        self,
        name: str,
        path: str,
        numa: int = -1,
        rate: str = "400 Gb/sec (4X NDR)",
        guid: str = "0c42:a103:0012:3456",
    ) -> None:
        """An active InfiniBand adapter on a PCI device."""
        self.device(path, vendor="0x15b3", kind="0x020700", numa=numa)
        folder = f"sys/devices/{path}/infiniband/{name}"
        for file, content in (("node_guid", guid), ("sys_image_guid", guid), ("hca_type", "MT4129")):
            self.file(f"{folder}/{file}", content)
        for file, content in (
            ("state", "4: ACTIVE"),
            ("phys_state", "5: LinkUp"),
            ("rate", rate),
            ("link_layer", "InfiniBand"),
            ("lid", "0x1"),
            ("sm_lid", "0x1"),
        ):
            self.file(f"{folder}/ports/1/{file}", content)
        self.link(f"{folder}/device", f"sys/devices/{path}")
        self.link(f"sys/class/infiniband/{name}", folder)


def fake_host(
    root: Path, name: str = "node7", boot: str = "11111111-2222-4333-8444-555555555555"
) -> FakeHost:
    """A host with nothing in it but a name, a running kernel and a PCI bus."""
    host = FakeHost(root)
    host.file("proc/sys/kernel/hostname", name)
    host.file("proc/sys/kernel/random/boot_id", boot)
    host.file("sys/class/dmi/id/sys_vendor", "Example Systems")
    host.file("sys/class/dmi/id/product_name", "GX-8")
    (root / "sys/bus/pci/devices").mkdir(parents=True)
    return host


def switched_pci(host: FakeHost, gpus: int = 8) -> None:
    """Two GPUs and two adapters below each PCIe switch, two root complexes a socket, GPU addresses as in the
    NVML profiles.
    """
    for gpu in range(gpus):
        group, socket, bus = gpu // 2, 2 * gpu // gpus, 0x1B + 0x10 * gpu
        switch = f"pci0000:{0x10 + group:02x}/0000:{0x10 + group:02x}:01.0/0000:{0xD0 + group:02x}:00.0"
        host.device(f"{switch}/0000:{0xE0 + group:02x}:{gpu % 2:02x}.0/0000:{bus:02x}:00.0", numa=socket)
        port = f"{switch}/0000:{0xE0 + group:02x}:{2 + gpu % 2:02x}.0/0000:{bus + 1:02x}:00.0"
        host.adapter(f"mlx5_{gpu}", port, numa=socket, guid=f"0c42:a103:0012:34{gpu:02x}")
