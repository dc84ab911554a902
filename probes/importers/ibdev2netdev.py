"""`ibdev2netdev`: which RDMA device is which interface, and whether it is up; with -v its PCI address too.

mlx5_0 port 1 ==> ibs3 (Up)
0000:1b:00.0 mlx5_0 (MT4129 - MCX75310) NVIDIA ConnectX-7 fw 28.39.1002 port 1 (ACTIVE) ==> ibs3 (Up)
"""

import re

from planner.base import BadInput
from probes.base.facts import HostFacts, NicFact

KIND = "ibdev2netdev"
OF_ONE_HOST = True
LARGEST_TEXT = 1 << 20
_LINE = re.compile(
    r"(?m)^[ \t>]{0,16}(?:(?P<pci>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])[ \t]+)?"
    r"(?P<device>[\w.-]{1,64})[ \t]+(?:\((?P<model>MT\d{1,6})[^)\n]{0,80}\)[^\n]{0,120}?)?"
    r"port (?P<port>\d{1,3})[ \t]*(?:\([A-Z]{1,16}\)[ \t]*)?==>"
    r"[ \t]*(?P<netdev>[\w.:@-]{0,64})[ \t]*\((?P<state>Up|Down)\)[ \t]*$"
)
_ARROW = re.compile(r"(?m)^[^\n]{0,240}\bport \d{1,3}[^\n]{0,40}==>")


def recognise(content: bytes, name: str) -> bool:
    del name
    return b"==>" in content[:LARGEST_TEXT] and _LINE.search(_text(content)) is not None


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """The one host. BadInput where a port comes twice."""
    text = _text(content)
    found = list(_LINE.finditer(text))
    lost = len(_ARROW.findall(text)) - len(found)
    ports = [(match["device"], match["port"]) for match in found]
    if len(set(ports)) != len(ports):
        twice = next(port for port in ports if ports.count(port) > 1)
        raise BadInput(f"{name}: {twice[0]} port {twice[1]} comes twice; give each host a file of its own")
    several = {device for device, port in ports if port != "1"}
    nics = tuple(_nic(match, several=match["device"] in several) for match in found)
    unknown = ["rates are not in it; 'ibstat' tells them"]
    unknown += [f"{lost} of its lines cannot be read: adapters are missing"] if lost > 0 else []
    return (HostFacts(name, KIND, "imported", nics=nics, unknown=tuple(unknown)),)


def _nic(match: re.Match[str], *, several: bool) -> NicFact:
    """An interface that is down may belong to a port that is up: said, and not taken for the port's state."""
    device, netdev, is_up = match["device"], match["netdev"], match["state"] == "Up"
    layer = (
        "InfiniBand" if netdev.startswith("ib") else "Ethernet" if netdev.startswith(("en", "eth")) else None
    )
    return NicFact(
        f"{device}:{match['port']}" if several else device,
        device=device if several else None,
        link_layer=layer,
        up=is_up or None,
        pci=match["pci"][-12:] if match["pci"] else None,
        model=match["model"],
        faults=() if is_up else (f"{device}: its interface {netdev} is down".replace("  ", " "),),
    )


def _text(content: bytes) -> str:
    return content[:LARGEST_TEXT].decode("utf-8", errors="replace")
