"""`show_gids`: the RDMA devices of a host by their GIDs: InfiniBand or RoCE, and which interface.

DEV     PORT  INDEX  GID                                      IPv4       VER  DEV
mlx5_0  1     3      0000:0000:0000:0000:0000:ffff:0a00:0001  10.0.0.1   v2   rdma0
"""

import re

from probes.base.facts import HostFacts, NicFact
from probes.fabric.naming import gid_guid

KIND = "show-gids"
OF_ONE_HOST = True
LARGEST_TEXT = 1 << 20
_HEAD = re.compile(r"(?m)^[ \t>]{0,16}DEV[ \t]+PORT[ \t]+INDEX[ \t]+GID\b")
_ROW = re.compile(
    r"(?m)^[ \t>]{0,16}(?P<device>[A-Za-z][\w.-]{1,63})[ \t]+(?P<port>\d{1,3})[ \t]+(?P<index>\d{1,4})[ \t]+"
    r"(?P<gid>(?:[0-9a-f]{4}:){7}[0-9a-f]{4})[ \t]*(?P<rest>[^\n]{0,160})$"
)
_COUNT = re.compile(r"(?m)^[ \t>]{0,16}n_gids_found=(\d{1,6})\s*$")
_LINK_LOCAL = "fe80:"
_VERSION = re.compile(r"(?:^|\s)v[12](?:\s+([\w.@-]{1,64}))?\s*$")


def recognise(content: bytes, name: str) -> bool:
    del name
    if b"INDEX" not in content[:LARGEST_TEXT]:
        return False
    text = _text(content)
    return _HEAD.search(text) is not None and _ROW.search(text) is not None


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """The one host: a NIC for each port that has a GID."""
    text = _text(content)
    rows = list(_ROW.finditer(text))
    ports: dict[tuple[str, str], list[re.Match[str]]] = {}
    for row in rows:
        ports.setdefault((row["device"], row["port"]), []).append(row)
    several = {device for device, port in ports if port != "1"}
    nics = tuple(
        _nic(device, port, mine, several=device in several) for (device, port), mine in ports.items()
    )
    unknown = ["rates and states are not in it; 'ibstat' tells them"]
    count = _COUNT.search(text)
    if count is None or int(count[1]) != len(rows):
        shown = f"{count[1]} GIDs were found" if count else "the line n_gids_found is not in the text"
        unknown.append(f"{shown}, {len(rows)} are shown: adapters may be missing")
    return (HostFacts(name, KIND, "imported", nics=nics, unknown=tuple(unknown)),)


def _nic(device: str, port: str, rows: list[re.Match[str]], *, several: bool) -> NicFact:
    local = next((row["gid"] for row in rows if row["gid"].startswith(_LINK_LOCAL)), None)
    netdevs = [found[1] for row in rows if (found := _VERSION.search(row["rest"])) and found[1]]
    is_ib = not netdevs or netdevs[0].startswith("ib")
    return NicFact(
        f"{device}:{port}" if several else device,
        device=device if several else None,
        link_layer="InfiniBand" if is_ib else "Ethernet",
        guid=gid_guid(local) if local else None,
    )


def _text(content: bytes) -> str:
    return content[:LARGEST_TEXT].decode("utf-8", errors="replace")
