"""hwloc's `lstopo x.xml`: GPUs and RDMA adapters with their PCI paths and NUMA nodes.

Only the DOCTYPE line that hwloc itself writes is passed over: no DTD is read and no entity expanded.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

from planner.base import BadInput
from planner.topology import LARGEST_NODE_GPUS, LARGEST_NODE_NICS
from probes.base.facts import GpuFact, HostFacts, NicFact
from probes.fabric.naming import normal_guid
from probes.importers.xml_text import parse_xml

KIND = "lstopo"
DEEPEST = 256
DOCTYPE = r"<!DOCTYPE topology SYSTEM \"hwloc2?\.dtd\">"
_BUS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NVIDIA, _AMD = "10de", "1002"


@dataclass
class _Device:
    """One PCI function: where it hangs, and what operating system and drivers call it."""

    pci: str
    kind: str  # PCI class, like '0302'
    vendor: str
    numa: int | None
    bridges: tuple[str, ...]
    rate_bytes_per_s: float | None
    names: list[str] = field(default_factory=list)
    infos: dict[str, str] = field(default_factory=dict)

    @property
    def is_gpu(self) -> bool:
        graphics = self.kind.startswith("03") and self.vendor in (_NVIDIA, _AMD)
        return graphics or self.kind.startswith("12")

    @property
    def rdma(self) -> str | None:
        return next(
            (name for name in self.names if re.match(r"(?:mlx|bnxt_re|irdma|efa|rdma|ionic|roce|ib)", name)),
            None,
        )


def recognise(content: bytes, name: str) -> bool:
    del name
    head = content[:4096]
    return b"<topology" in head and (b"<object" in content[: 1 << 16] or b"hwloc" in head)


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """The one host. BadInput where it is no whole XML, has a DTD of its own, or shows no GPU."""
    root = _parse(content, name)
    devices = list(_devices(root, name))
    gpus = sorted((one for one in devices if one.is_gpu), key=lambda one: one.pci)
    nics = [one for one in devices if one.kind.startswith("02") and one.rdma]
    if not gpus:
        raise BadInput(f"{name}: shows no GPU; run lstopo with its PCI devices: lstopo --whole-io x.xml")
    if len(gpus) > LARGEST_NODE_GPUS or len(nics) > LARGEST_NODE_NICS:
        raise BadInput(f"{name}: {len(gpus)} GPUs and {len(nics)} NICs on one host; no host has as many")
    host = next((info.get("value") for info in root.iter("info") if info.get("name") == "HostName"), None)
    untold = "which GPUs NVLink joins is not in it; add 'nvidia-smi topo -m'"
    bare = [nic.pci for nic in devices if nic.kind.startswith("02") and not nic.rdma]
    warnings = (f"network cards without an RDMA device are left out: {', '.join(bare[:8])}",) if bare else ()
    return (
        HostFacts(
            name,
            KIND,
            "imported",
            host,
            gpus=tuple(_gpu(at, one) for at, one in enumerate(gpus)),
            nics=tuple(_nic(one) for one in nics),
            nic_paths={
                (a, b): _between(gpu, nic) for a, gpu in enumerate(gpus) for b, nic in enumerate(nics)
            },
            gpu_paths={(a, b): _between(gpus[a], gpus[b]) for a, b in combinations(range(len(gpus)), 2)},
            unknown=(untold,) if len(gpus) > 1 else (),
            warnings=warnings,
        ),
    )


def _parse(content: bytes, name: str) -> ET.Element:
    root = parse_xml(content, name, "hwloc", DOCTYPE)
    if root.tag != "topology":
        raise BadInput(f"{name}: the XML begins with <{root.tag[:40]}>, not with hwloc's <topology>")
    return root


def _devices(root: ET.Element, name: str) -> Iterator[_Device]:
    """The PCI functions in the order of the file, without recursion."""
    waiting: list[tuple[ET.Element, int | None, tuple[str, ...], int]] = [(root, None, (), 0)]
    while waiting:
        element, numa, bridges, depth = waiting.pop()
        if depth > DEEPEST:
            raise BadInput(f"{name}: more than {DEEPEST} objects inside each other; this is no real machine")
        kind = element.get("type", "")
        here = [one for one in element.findall("object") if one.get("type") == "NUMANode"]
        if kind == "NUMANode":  # of hwloc 1, which hangs devices below them
            here = [element]
        if here and (element.get("type") != "Machine" or len(here) == 1):
            number = here[0].get("os_index", "")
            numa = int(number) if re.fullmatch(r"\d{1,4}", number) else numa
        if kind == "Bridge":
            words = (element.get(key, "") for key in ("bridge_type", "gp_index", "pci_busid"))
            bridges = (*bridges, " ".join(words))
        if kind == "PCIDev" and (device := _device(element, numa, bridges)):
            yield device
        children = element.findall("object")
        waiting += [(child, numa, bridges, depth + 1) for child in reversed(children)]


def _device(element: ET.Element, numa: int | None, bridges: tuple[str, ...]) -> _Device | None:
    bus, told = element.get("pci_busid", "").lower(), element.get("pci_type", "")
    match = re.match(r"([0-9a-f]{4}) \[([0-9a-f]{4}):", told.lower())
    if not _BUS.fullmatch(bus) or match is None:
        return None
    speed = re.fullmatch(r"\d{1,4}(?:\.\d{1,9})?", element.get("pci_link_speed", ""))
    rate = float(speed[0]) * 1e9 if speed and float(speed[0]) > 0 else None
    device = _Device(bus[-12:], match[1], match[2], numa, bridges, rate)
    for child in element.findall("object"):
        device.names.append(child.get("name", ""))
        device.infos |= {one.get("name", ""): one.get("value", "") for one in child.findall("info")}
    return device


def _between(one: _Device, other: _Device) -> str:
    """PIX, PXB, PHB, NODE or SYS: the first bridge of each is its root complex."""
    shared = sum(a == b for a, b in zip(one.bridges, other.bridges, strict=False) if a == b)
    if shared == 0:
        return "NODE" if one.numa is not None and one.numa == other.numa else "SYS"
    if shared == 1:
        return "PHB"
    crossed = max(len(one.bridges), len(other.bridges)) - shared
    return "PIX" if crossed <= 1 else "PXB"


def _gpu(index: int, device: _Device) -> GpuFact:
    name = device.infos.get("GPUModel") or device.infos.get("NVIDIAModel")
    if device.vendor == _AMD:
        name = f"AMD {name.removeprefix('AMD ')}" if name else "AMD GPU"
    uuid = device.infos.get("NVIDIAUUID", "")
    return GpuFact(
        index,
        name,
        uuid=uuid if re.fullmatch(r"GPU-[0-9a-fA-F-]{8,40}", uuid) else None,
        pci=device.pci,
        numa=device.numa,
    )


def _nic(device: _Device) -> NicFact:
    """A port that is up; hwloc tells neither rate nor link layer."""
    state = device.infos.get("Port1State", "")
    return NicFact(
        device.rdma or device.pci,
        up={"4": True, "1": False}.get(state),
        pci=device.pci,
        numa=device.numa,
        guid=normal_guid(device.infos.get("NodeGUID", "")),
    )
