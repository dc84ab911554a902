"""`ibv_devinfo`: the RDMA adapters of a host, with -v also their rates.

hca_id: mlx5_0
        node_guid:                      a088:c203:00ab:cdef
        vendor_part_id:                 4129
                port:   1
                        state:                  PORT_ACTIVE (4)
                        link_layer:             InfiniBand
                        active_width:           4X (2)
                        active_speed:           100.0 Gbps (128)
"""

import re
from dataclasses import dataclass, field

from planner.base import BadInput
from probes.base.facts import HostFacts, NicFact
from probes.fabric.naming import normal_guid
from probes.host.adapters import mark_fabric, port_fact

KIND = "ibv-devinfo"
OF_ONE_HOST = True
LARGEST_TEXT = 8 << 20
_START = re.compile(rb"(?m)^[ \t>]{0,16}hca_id:[ \t]{1,16}\S")
_DEVICE = re.compile(r"[ \t>]{0,16}hca_id:\s{1,16}([\w.-]{1,64})\s*")
_PORT = re.compile(r"[ \t>]{0,32}port:\s{1,16}(\d{1,3})\s*")
_FIELD = re.compile(r"[ \t>]{0,64}([a-z_]{2,40}):\s{1,64}(\S.{0,120}?)\s*")
_SPEED = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,2})?) Gbps.*")
_WIDTH = re.compile(r"(1|2|4|8|12)X.*")
_LAYERS = ("InfiniBand", "Ethernet")
Words = dict[str, str]


@dataclass
class _Device:
    """One adapter: its own fields, then those of each port by number."""

    name: str
    fields: Words = field(default_factory=dict)
    ports: dict[str, Words] = field(default_factory=dict)


def recognise(content: bytes, name: str) -> bool:
    del name
    head = content[:LARGEST_TEXT]
    return b"hca_id" in head and _START.search(head) is not None


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """The one host. BadInput where an adapter comes twice with another GUID."""
    unknown: list[str] = []
    nics: list[NicFact] = []
    for device in _devices(content, name):
        declared = device.fields.get("phys_port_cnt", str(len(device.ports)))
        if declared != str(len(device.ports)):
            told = f"{device.name} says it has {declared[:8]} ports; {len(device.ports)} are shown"
            unknown.append(f"{told}: the text may be cut short")
        several = set(device.ports) - {"1"}
        for number, words in device.ports.items() or [("1", {})]:
            unknown += _doubts(device.name, words)
            nics.append(_nic(device, number if several else None, words))
    marked, warnings = mark_fabric(nics)
    bare = [nic.name for nic in nics if nic.up and nic.rate_bytes_per_s is None]
    if bare:
        unknown.append(
            f"the rates of {', '.join(bare[:8])} are not in it; 'ibv_devinfo -v' or 'ibstat' tells them"
        )
    return (HostFacts(name, KIND, "imported", nics=marked, unknown=tuple(unknown), warnings=warnings),)


def _doubts(device: str, words: Words) -> list[str]:
    missing = [word for word in ("state", "link_layer") if word not in words]
    layer = words.get("link_layer", "")
    if missing or any(known != layer and known.startswith(layer) for known in _LAYERS):
        lacks = ", ".join(missing) or "link_layer"
        return [f"{device} is not whole ({lacks} missing): the text may be cut short"]
    return []


def _devices(content: bytes, name: str) -> list[_Device]:
    devices: dict[str, _Device] = {}
    target: Words = {}
    for line in content[:LARGEST_TEXT].decode("utf-8", errors="replace").split("\n"):
        if start := _DEVICE.fullmatch(line):
            if start[1] in devices:
                raise BadInput(f"{name}: {start[1]} comes twice; give each host a file of its own")
            device = devices[start[1]] = _Device(start[1])
            target = device.fields
        elif devices and (port := _PORT.fullmatch(line)):
            target = device.ports.setdefault(port[1], {})
        elif devices and (found := _FIELD.fullmatch(line)):
            target.setdefault(found[1], found[2])
    return list(devices.values())


def _nic(device: _Device, number: str | None, words: Words) -> NicFact:
    state = words.get("state", "").partition(" ")[0].removeprefix("PORT_")
    speed = _SPEED.fullmatch(words.get("active_speed", ""))
    width = _WIDTH.fullmatch(words.get("active_width", ""))
    layer = words.get("link_layer")
    part = device.fields.get("vendor_part_id", "")
    nic = NicFact(
        device.name if number is None else f"{device.name}:{number}",
        device=None if number is None else device.name,
        rate_bytes_per_s=float(speed[1]) * int(width[1]) * 1e9 / 8 if speed and width else None,
        link_layer=layer if layer in _LAYERS else None,
        guid=normal_guid(device.fields.get("node_guid", "")),
        model=f"MT{part}" if part.isascii() and part.isdigit() else None,
        card=normal_guid(device.fields.get("sys_image_guid", "")),
    )
    return port_fact(
        nic, state.capitalize() or None, words.get("phys_state", "").partition(" ")[0].title() or None
    )
