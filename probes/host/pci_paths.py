"""How near two PCI devices are, from the bridges that the kernel lists between the root complex and each."""

import itertools
import re
from collections.abc import Sequence

from probes.host.sysfs_tree import Tree, entries, resolve, text

PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ROOT_COMPLEX = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_NVIDIA, _DISPLAY = "0x10de", ("0x0300", "0x0302")  # VGA and 3D controllers


def pci_path(tree: Tree, sysfs: str, address: str) -> str | None:
    """'pci0000:15/0000:15:01.0/0000:1b:00.0' of the device '0000:1b:00.0', as `NicFact.pci_path` has it.

    None where the kernel does not list it.
    """
    place = f"{sysfs}/bus/pci/devices/{address}"
    complexes, addresses = pci_parts((resolve(tree, place) or "").split("/"))
    return "/".join([complexes[-1], *addresses]) if complexes and addresses else None


def pci_parts(folders: Sequence[str]) -> tuple[list[str], list[str]]:
    """Root complexes ('pci0000:15') and PCI addresses ('0000:15:01.0') among the folders of a path."""
    complexes = [folder for folder in folders if _ROOT_COMPLEX.fullmatch(folder)]
    return complexes, [folder for folder in folders if PCI_ADDRESS.fullmatch(folder)]


def pcie_distance(a: str, b: str) -> str | None:
    """
    PIX below one switch, PXB below several, PHB at one root complex; None at different ones.

    >>> switch = "pci0000:15/0000:15:01.0/0000:16:00.0"
    >>> pcie_distance(f"{switch}/0000:17:00.0/0000:18:00.0", f"{switch}/0000:17:01.0/0000:19:00.0")
    'PIX'
    """
    own, other = a.split("/"), b.split("/")
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(own, other, strict=False))
    shared = len(list(alike))
    if shared == 0:
        return None
    if shared == 1:  # only the root complex
        return "PHB"
    # bridges between the last shared one and the farther device: a switch's own port is one
    below = max(len(own), len(other)) - shared - 1
    return "PIX" if below <= 1 else "PXB"


def numa_node(tree: Tree, sysfs: str, address: str) -> int | None:
    return numa_node_in(tree, f"{sysfs}/bus/pci/devices/{address}")


def numa_node_in(tree: Tree, device: str) -> int | None:
    """The NUMA node of the device in a folder; None where the firmware does not say (-1)."""
    found = text(tree, f"{device}/numa_node") or ""
    return int(found) if found.isascii() and found.isdigit() and len(found) < 6 else None


def nvidia_gpus(tree: Tree, sysfs: str) -> tuple[str, ...]:
    """PCI addresses of the NVIDIA GPUs that the kernel lists, with or without a driver."""
    place = f"{sysfs}/bus/pci/devices"
    return tuple(
        address
        for address in entries(tree, place)
        if text(tree, f"{place}/{address}/vendor") == _NVIDIA
        and (text(tree, f"{place}/{address}/class") or "").startswith(_DISPLAY)
    )
