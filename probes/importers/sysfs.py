"""A copy of /sys/class/infiniband as .tar, .tar.gz or directory: the adapters of one host or several.

Made with:
    devices=$(cd / && readlink -f sys/class/infiniband/*/device | cut -c2-)
    tar czf host.tar.gz -C / sys/class/infiniband $devices
"""

import zlib
from pathlib import Path

from planner.base import BadInput
from probes.base.facts import HostFacts, noted
from probes.host.archive import read_archive
from probes.host.rdma import CLASS, rdma_facts
from probes.host.sysfs_tree import Archive, Directory, Tree, entries

_PEEK_BYTES = 4 << 20
_DEEPEST, _MOST_FOLDERS = 5, 20_000
_CUT = "the archive is cut short: adapters, ports and files may be missing, and every count is a lower bound"


def recognise(content: bytes, name: str) -> bool:
    """Whether it is an archive that holds RDMA devices."""
    return _is_tar(content) and any(word in _head(content) for word in (b"infiniband", b"/ports/1/"))


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """One value for each host in the archive."""
    tree = read_archive(content, name)
    return _read_tree(tree, name)


def read_directory(root: Path) -> tuple[HostFacts, ...]:
    """The same from a directory that holds a copy of sysfs, of one host or of several."""
    return _read_tree(Directory(root), str(root))


def _read_tree(tree: Tree, name: str) -> tuple[HostFacts, ...]:
    places = _places(tree)
    if not places:
        raise BadInput(
            f"{name}: holds no sys/class/infiniband with devices in it; "
            "archive that folder, and the PCI devices its links point to"
        )
    several = len(places) > 1
    facts = []
    for place in places:
        source = f"{name}:{place}" if place else name
        facts.append(rdma_facts(tree, place, source, "imported", _host(place) if several else None))
    if isinstance(tree, Archive) and tree.cut:
        return tuple(noted(found, [_CUT]) for found in facts)
    return tuple(facts)


def _host(place: str) -> str:
    """The folder that holds this host's sys."""
    return place.removesuffix(CLASS).rstrip("/").removesuffix("sys").rstrip("/") or place


def _places(tree: Tree) -> list[str]:
    """Folders whose entries are RDMA devices, in order.

    Not below one another, and not the devices' own places in the PCI tree.
    """
    found: list[str] = []
    todo = [("", 0)]
    for visited, (folder, depth) in enumerate(todo):  # grows as it goes: breadth first
        if visited >= _MOST_FOLDERS:
            break
        inside = [f"{folder}/{entry}".lstrip("/") for entry in entries(tree, folder)]
        if any(entries(tree, f"{path}/ports") for path in inside) or (inside and folder.endswith(CLASS)):
            found.append(folder)
        elif depth < _DEEPEST:
            real = [path for path in inside if tree.link(path) is None and not path.endswith("devices")]
            todo += [(path, depth + 1) for path in real]
    return sorted(found)


def _is_tar(content: bytes) -> bool:
    return content[:2] == b"\x1f\x8b" or content[257:262] == b"ustar"


def _head(content: bytes) -> bytes:
    """The first few megabytes, unfolded; empty where it is no gzip after all."""
    if content[:2] != b"\x1f\x8b":
        return content[:_PEEK_BYTES]
    try:
        return zlib.decompressobj(wbits=31).decompress(content[:_PEEK_BYTES], _PEEK_BYTES)
    except zlib.error:
        return b""
