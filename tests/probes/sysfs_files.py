"""A made-up sysfs: one host with adapters, as files and links, to be written to a directory or an archive."""

import io
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Adapter:
    """One device. `bridges` are PCI addresses from the root port down to the one above it."""

    name: str
    pci: str = "0000:1b:00.0"
    bridges: tuple[str, ...] = ("0000:15:01.0", "0000:16:00.0", "0000:17:00.0")
    rate: str = "400 Gb/sec (4X NDR)"
    state: str = "4: ACTIVE"
    layer: str = "InfiniBand"
    numa: str = "0"
    model: str = "MT4129"
    speeds: tuple[str, str] = ("32.0 GT/s PCIe", "32.0 GT/s PCIe")  # now, most
    widths: tuple[str, str] = ("16", "16")
    ports: int = 1
    driver: str = "mlx5_core"
    more: dict[str, str | bytes] = field(default_factory=dict)  # further files of the PCI device

    @property
    def folder(self) -> str:
        return "/".join(["sys/devices/pci0000:15", *self.bridges, self.pci])

    def files(self) -> dict[str, str | bytes]:
        device = f"{self.folder}/infiniband/{self.name}"
        guid = f"{int(self.pci[5:7], 16):04x}"
        files: dict[str, str | bytes] = {
            f"{self.folder}/numa_node": self.numa,
            f"{self.folder}/current_link_speed": self.speeds[0],
            f"{self.folder}/max_link_speed": self.speeds[1],
            f"{self.folder}/current_link_width": self.widths[0],
            f"{self.folder}/max_link_width": self.widths[1],
            f"{device}/hca_type": self.model,
            f"{device}/node_guid": f"0000:0000:0000:{guid}",
            f"{device}/sys_image_guid": f"0000:0000:0001:{guid}",
            **{f"{self.folder}/{path}": content for path, content in self.more.items()},
        }
        for port in range(1, self.ports + 1):
            files |= {
                f"{device}/ports/{port}/state": self.state,
                f"{device}/ports/{port}/phys_state": "5: LinkUp"
                if self.state.startswith("4")
                else "2: Polling",
                f"{device}/ports/{port}/rate": self.rate,
                f"{device}/ports/{port}/link_layer": self.layer,
                f"{device}/ports/{port}/gids/0": f"fe80:0000:0000:0000:0000:0000:0002:{guid}",
            }
        return files

    def links(self) -> dict[str, str]:
        """As the kernel has them, relative to their own folder."""
        up, below_sys = "../" * 3, self.folder.removeprefix("sys/")
        return {
            f"sys/class/infiniband/{self.name}": f"../../{below_sys}/infiniband/{self.name}",
            f"{self.folder}/infiniband/{self.name}/device": "../../../" + self.pci,
            f"{self.folder}/driver": f"{up}{'../' * len(self.bridges)}bus/pci/drivers/{self.driver}",
        }


def write(root: Path, adapters: list[Adapter], more: dict[str, str | bytes] | None = None) -> Path:
    """The files and links below `root`."""
    files = {path: content for adapter in adapters for path, content in adapter.files().items()} | (
        more or {}
    )
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content.encode() + b"\n" if isinstance(content, str) else content)
    for path, target in (pair for adapter in adapters for pair in adapter.links().items()):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).symlink_to(target)
    return root


def packed(
    files: dict[str, str | bytes], links: dict[str, str] | None = None, compression: str = "gz"
) -> bytes:
    """An archive of files and links."""
    out = io.BytesIO()
    mode: Any = f"w:{compression}"  # put together, so that no type knows it
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            data = content.encode() if isinstance(content, str) else content
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for path, target in (links or {}).items():
            member = tarfile.TarInfo(path)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
    return out.getvalue()
