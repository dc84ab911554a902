"""The PCI tree of an NCCL topology file: devices with the bridges above them, and how far two are apart."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field

from planner.base import BadInput

DEEPEST = 64  # bridges above a device
MOST_DEVICES = 20_000
_BROADCOM = ("0x1000", "0xc030")  # one switch that shows as two levels of bridges
_SPEED = re.compile(r"([0-9]{1,3}(?:\.[0-9])?) GT/s(?: PCIe)?")
_WIDTHS = ("1", "2", "4", "8", "16", "32")


@dataclass(frozen=True)
class Bridge:
    """One switch or bridge; `number` tells those with equal addresses apart."""

    number: int
    broadcom: bool


@dataclass(frozen=True)
class Device:
    """One PCI function, its NUMA node, and the bridges from the CPU down to it.

    `pci` is empty for network interfaces without one.
    """

    pci: str
    kind: str  # the class, like '0x030200'
    numa: int | None
    cpu: int
    bridges: tuple[Bridge, ...]
    gpu: ET.Element | None = None
    nets: tuple[ET.Element, ...] = ()
    speed: str = ""
    width: str = ""
    vendor: str = ""  # '0x10de'

    @property
    def is_gpu_class(self) -> bool:
        return self.kind.startswith(("0x03", "0x12"))

    @property
    def is_nic_class(self) -> bool:
        return self.kind.startswith("0x02")


@dataclass
class _Walk:
    name: str
    cpu: int
    numa: int | None
    seen: int = field(default=0)


def devices_of(cpu: ET.Element, name: str) -> Iterator[Device]:
    """The devices below one <cpu>, in the order of the file.

    BadInput (beginning with `name`) where it nests or grows beyond any machine.
    """
    numa = cpu.get("numaid", "")
    walk = _Walk(name, id(cpu), int(numa) if re.fullmatch(r"[0-9]{1,4}", numa) else None)
    loose = tuple(net for nic in cpu.findall("nic") for net in nic.findall("net"))
    if loose:
        yield Device("", "", walk.numa, walk.cpu, (), nets=loose)
    for element in cpu.findall("pci"):
        yield from _below(element, (), walk)


def _below(element: ET.Element, above: tuple[Bridge, ...], walk: _Walk) -> Iterator[Device]:
    walk.seen += 1
    if len(above) > DEEPEST or walk.seen > MOST_DEVICES:
        most = f"more than {DEEPEST} bridges in a row or {MOST_DEVICES:,} PCI devices below one CPU"
        raise BadInput(f"{walk.name}: {most}; this is no real machine")
    children = element.findall("pci")
    gpu = element.find("gpu")
    nets = tuple(net for nic in element.findall("nic") for net in nic.findall("net"))
    if children:
        ids = element.get("vendor", "").lower(), element.get("device", "").lower()
        bridge = Bridge(walk.seen, ids == _BROADCOM)
        for child in children:
            yield from _below(child, (*above, bridge), walk)
    if gpu is not None or nets or not children:
        pci, kind = element.get("busid", "").lower()[:32], element.get("class", "").lower()[:16]
        speed, width = element.get("link_speed", "")[:32], element.get("link_width", "")[:4]
        vendor = element.get("vendor", "").lower()[:8]
        yield Device(pci, kind, walk.numa, walk.cpu, above, gpu, nets, speed, width, vendor)


def between(one: Device, other: Device) -> str:
    """PIX, PXB, PHB or SYS, as NCCL classes a path: over one switch, several, the CPU, or between CPUs.

    Two levels of one Broadcom switch are one.
    """
    if one.cpu != other.cpu:
        return "SYS"
    shared = 0
    while shared < min(len(one.bridges), len(other.bridges)) and one.bridges[shared] == other.bridges[shared]:
        shared += 1
    if one is other or (one.pci and one.pci == other.pci):
        return "PIX"
    if shared == 0:
        return "PHB"
    crossed = {*one.bridges[shared - 1 :], *other.bridges[shared - 1 :]}
    return "PIX" if len(crossed) == 1 or all(bridge.broadcom for bridge in crossed) else "PXB"


def pcie_bytes_per_s(device: Device) -> float | None:
    """Raw bytes/s of the device's link, one direction.

    None where the file leaves speed or width open (a virtual machine's 0).
    """
    match = _SPEED.fullmatch(device.speed.strip())
    if match is None or device.width not in _WIDTHS or float(match[1]) <= 0:
        return None
    return float(match[1]) * 1e9 * int(device.width) / 8
