"""The network interfaces in NCCL's topology XML, each once, and which of them are for expert traffic."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from probes.base.facts import NicFact
from probes.fabric.naming import some_of
from probes.importers.pci_tree import Device
from probes.importers.xml_links import whole_number

_VIRTUAL = re.compile(r"(?:tunl|br-|cali|veth|docker|virbr|vxlan|flannel|cni|dummy|lo)[\w.-]{0,32}")
_SLOWEST_FABRIC_MBPS = 10_000  # what NCCL writes for an interface that does not tell its speed
Nics = tuple[tuple[NicFact, ...], list[Device | None]]


def nics_of(devices: Sequence[Device], warnings: list[str]) -> Nics:
    """The interfaces and the PCI device of each (None: none is given).

    Without any <net>, the PCI functions of class 0x02.
    """
    nics: dict[tuple[str, str], tuple[NicFact, Device | None]] = {}
    for device in devices:
        for net in device.nets:
            key = net.get("name", "?"), net.get("guid", "")
            nic, before = nics.get(key, (_nic(net, device), device))
            # repeated under every CPU: it has no place
            nics[key] = nic, before if before is not None and before.cpu == device.cpu else None
    if not nics:
        bare = [device for device in devices if device.is_nic_class]
        return tuple(NicFact(device.pci, pci=device.pci, numa=device.numa) for device in bare), [*bare]
    left_out = [nic.name for nic, _ in nics.values() if nic.compute is False]
    if left_out:
        warnings.append(
            f"virtual and slow interfaces are not for expert traffic: {some_of(left_out, most=8)}"
        )
    return tuple(nic for nic, _ in nics.values()), [device for _, device in nics.values()]


def _nic(net: ET.Element, device: Device) -> NicFact:
    speed_mbps = whole_number(net.get("speed"), 0)
    direct = {"0": False, "1": True}.get(net.get("gdr", ""))
    name = net.get("name", "?")
    idle = direct is False and speed_mbps <= _SLOWEST_FABRIC_MBPS
    guid = net.get("guid", "0x0")
    return NicFact(
        name,
        rate_bytes_per_s=speed_mbps * 1e6 / 8 if speed_mbps > 0 else None,
        compute=False if idle or _VIRTUAL.fullmatch(name) else None,
        pci=device.pci or None,
        numa=device.numa if device.pci else None,
        guid=guid if re.fullmatch(r"0x[0-9a-f]{9,16}", guid) else None,
        gpudirect=direct,
    )
