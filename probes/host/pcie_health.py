"""What PCIe does to an adapter's traffic: slow links, ACS that redirects it, an IOMMU that translates."""

import re

from probes.base.port_rates import human_port
from probes.host.sysfs_tree import Tree, content, text

_ACS = 0x000D  # PCI Express extended capability: access control services
_REDIRECT = 0x0004 | 0x0008  # P2P request redirect, P2P completion redirect (control register)
_FIRST_EXTENDED = 0x100
_GT_PER_S = re.compile(r"(\d{1,3}(?:\.\d{1,2})?) GT/s(?: PCIe)?")


def link_faults(tree: Tree, device: str, name: str, port_bytes_per_s: float | None) -> tuple[str, ...]:
    """Sentences on the link of the PCI device at `device`.

    Slower or narrower than card and slot both allow, or slower than the network port.
    """
    faults = []
    now, card = _link(tree, device, "current"), _link(tree, device, "max")
    slot = _link(tree, device.rpartition("/")[0], "max")
    for what, unit, index in (("speed", " GT/s", 0), ("width", " lanes", 1)):
        able, current = [figure for link in (card, slot) if (figure := link[index]) is not None], now[index]
        if current is not None and able and current < min(able):
            faults.append(f"{name}: PCIe {what} is {current:g}{unit} where card and slot allow {min(able):g}")
    if now[0] and now[1] and port_bytes_per_s:
        # one bit a transfer and lane; coding takes 1.5 % of it from 8 GT/s on
        pcie_bytes_per_s = now[0] * now[1] * 1e9 / 8
        if pcie_bytes_per_s < port_bytes_per_s:
            link = f"{now[0]:g} GT/s x{now[1]:g} = {human_port(pcie_bytes_per_s)}"
            port = human_port(port_bytes_per_s)
            faults.append(f"{name}: its PCIe link ({link}) is slower than its port ({port})")
    return tuple(faults)


def _link(tree: Tree, device: str, which: str) -> tuple[float | None, float | None]:
    """GT/s and lanes; None where the kernel says 'Unknown', 0 or 255, or nothing."""
    speed = _GT_PER_S.fullmatch(text(tree, f"{device}/{which}_link_speed") or "")
    width = text(tree, f"{device}/{which}_link_width") or ""
    lanes = int(width) if width.isascii() and width.isdigit() and len(width) < 3 else 0
    return (float(speed[1]) or None) if speed else None, float(lanes) or None


def redirecting_bridges(tree: Tree, bridges: list[str]) -> tuple[tuple[str, ...], bool]:
    """Names of the PCI bridges (paths) whose ACS redirects peer traffic, and whether all could be read.

    Beyond 64 bytes only root may read.
    """
    found, all_read = [], True
    for bridge in bridges:
        config = content(tree, f"{bridge}/config")
        if config is None or len(config) <= _FIRST_EXTENDED:
            all_read = False
        elif _acs_control(config) & _REDIRECT:
            found.append(bridge.rpartition("/")[2])
    return tuple(found), all_read


def _acs_control(config: bytes) -> int:
    """The ACS control register in a PCI configuration space; 0 without the capability."""
    at, seen = _FIRST_EXTENDED, set()
    while _FIRST_EXTENDED <= at <= len(config) - 8 and at not in seen:
        seen.add(at)
        header = int.from_bytes(config[at : at + 4], "little")
        if header & 0xFFFF == _ACS:
            return int.from_bytes(config[at + 6 : at + 8], "little")
        at = header >> 20
    return 0


def translating(tree: Tree, device: str) -> str | None:
    """The type of the device's IOMMU group where it translates addresses ('DMA', 'DMA-FQ').

    None where it passes through, is off, or is not told.
    """
    kind = text(tree, f"{device}/iommu_group/type")
    return kind if kind and kind.startswith("DMA") else None
