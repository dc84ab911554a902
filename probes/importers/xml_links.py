"""NVLinks (or AMD's xGMI links) in NCCL's topology XML, and the domains they make."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from planner.base import BadInput
from probes.importers.pci_tree import Device
from probes.machine.nvlink_domains import Domains, domains_from_links

_NO_ADDRESS = "fffffff"  # how the address of a switch begins that the driver does not name


@dataclass(frozen=True)
class Link:
    """Links of one GPU to one far end."""

    target: str
    count: int
    to_switch: bool


def whole_number(text: str | None, default: int) -> int:
    match = re.fullmatch(r"-?[0-9]{1,12}", (text or "").strip())
    return int(match[0]) if match else default


def links_of(device: Device, name: str) -> list[Link]:
    """The links of one GPU. BadInput (beginning with `name`) where there are more than a GPU has."""
    if device.gpu is None:
        return []
    found = []
    for element in (*device.gpu.iter("nvlink"), *device.gpu.iter("xgmi")):
        count = whole_number(element.get("count"), 0)
        if not 1 <= count <= 36:
            told = f"GPU {device.pci}: a link count of {element.get('count')!r}"
            raise BadInput(f"{name}: {told}; a GPU has 1 to 36 links to one far end")
        target, far = element.get("target", "").lower(), element.get("tclass", "").lower()
        to_switch = far.startswith("0x0680") or target.startswith(_NO_ADDRESS)
        found.append(Link(target, count, to_switch))
    return found


def domains_of(gpus: Sequence[Device], name: str) -> Domains | None:
    """The domains of a host.

    None where a direct link leads to no other GPU of the file: who its partner is would be a guess, but for
    two GPUs.
    """
    place = {device.pci: index for index, device in enumerate(gpus)}
    direct: dict[tuple[int, int], int] = {}
    to_switch, switches = [0] * len(gpus), [set[str]() for _ in gpus]
    for index, device in enumerate(gpus):
        for link in links_of(device, name):
            if link.to_switch:
                to_switch[index] += link.count
                switches[index] |= set() if link.target.startswith(_NO_ADDRESS) else {link.target}
                continue
            peer = place.get(link.target, index)
            if peer == index and len(gpus) != 2:
                return None
            peer = 1 - index if peer == index else peer
            pair = min(index, peer), max(index, peer)
            direct[pair] = max(direct.get(pair, 0), link.count)
    return domains_from_links(direct, to_switch, [frozenset(ids) for ids in switches])


def shared_links(pair: tuple[int, int], gpus: Sequence[Device], domains: Domains) -> int:
    """Links that join a pair: direct ones, or through a switch the fewer of the two GPUs' own."""
    a, b = pair
    if not any(a in group and b in group for group in domains.domains):
        return 0
    if domains.kind == "switch":
        return min(domains.links[a] or 0, domains.links[b] or 0)
    ends = {gpus[a].pci, gpus[b].pci}
    links = (*links_of(gpus[a], ""), *links_of(gpus[b], ""))
    return max((link.count for link in links if link.target in ends), default=0)
