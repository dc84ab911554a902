"""Names as fabric tools write them, and an order in which mlx5_2 is before mlx5_10."""

import re
from collections.abc import Sequence

from probes.base.facts import PortFact

UNNAMED = "guid:"  # what the name of a host begins with when only a GUID tells it
_DIGITS = re.compile(r"(\d{1,18})")
_GUID = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})")
_MANAGED = re.compile(r"MF0;([^:;]+):([^/:]+)/(\S+)")
_FACTORY = re.compile(r"(?:MT\d{4,5}\b.*|.*Mellanox Technologies.*|ConnectX.*)")
_NO_HOST = ("localhost", "localhost.localdomain", "(none)")


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """A sorting key: digits by value, the rest as text."""
    return tuple(
        (0, int(part)) if part.isdigit() and part.isascii() else (1, part)
        for part in _DIGITS.split(name)
        if part
    )


def port_order(port: PortFact) -> tuple[object, ...]:
    """A sorting key: by host, NIC and leaf."""
    return natural(port.host), natural(port.nic or ""), port.leaf, port.guid or ""


def some_of(names: Sequence[str], most: int = 10) -> str:
    """
    The first of many names.

    >>> some_of(["leaf1", "leaf2", "leaf3"], most=2)
    'leaf1, leaf2 ...'
    """
    return ", ".join(names[:most]) + (" ..." if len(names) > most else "")


def normal_guid(text: str) -> str | None:
    """
    16 hex digits; None for all zeros or no GUID.

    >>> normal_guid("0xff08c4321664e96")
    '0ff08c4321664e96'
    """
    match = _GUID.fullmatch(text.strip().replace(":", ""))
    return match[1].lower().zfill(16) if match and int(match[1], 16) else None


def gid_guid(gid: str) -> str | None:
    """
    The port's GUID, which is the last half of its GID.

    >>> gid_guid("fe80:0000:0000:0000:ff08:c432:1664:0e96")
    'ff08c43216640e96'
    """
    return normal_guid("".join(gid.split(":")[4:])) if is_gid(gid) else None


def is_gid(text: str) -> bool:
    return text.count(":") == 7


def is_aggregation(description: str) -> bool:
    """Whether it is the SHARP unit inside a switch, which no host owns."""
    return "Aggregation Node" in description


def adapter_owner(description: str) -> tuple[str | None, str | None]:
    """
    Host and device of an adapter's node description; None for what it does not say.

    >>> adapter_owner("node07 mlx5_3"), adapter_owner("localhost HCA-2")
    (('node07', 'mlx5_3'), (None, 'HCA-2'))
    >>> adapter_owner("MT4129 ConnectX7   Mellanox Technologies")
    (None, None)
    """
    words = description.split()
    if not words or len(words) > 2 or _FACTORY.fullmatch(description.strip()):
        return None, None
    host = None if words[0].lower() in _NO_HOST else words[0]
    return host, words[1] if len(words) == 2 else None


def switch_name(description: str) -> tuple[str | None, str | None]:
    """
    Name of the switch or of its chassis, and the unit in it; None for what the description does not say.

    >>> switch_name("MF0;core-A:MCS8500/L01/U1"), switch_name("MF0;leaf1:MQM9700/U1")
    (('core-A', 'L01'), ('leaf1', None))
    """
    match = _MANAGED.fullmatch(description.strip())
    if match is None:
        named = bool(description.strip()) and not _FACTORY.fullmatch(description.strip())
        return (description.strip() if named else None), None
    unit = match[3].split("/")[0]
    return match[1], None if re.fullmatch(r"U\d{1,3}", unit) else unit
