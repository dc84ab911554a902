"""InfiniBand and Ethernet port rates as tools write them, to bytes per second of one direction."""

import re

LANE_BITS_PER_S = {  # data rate of one lane, as the kernel and ibnetdiscover name it
    "SDR": 2.5e9,
    "DDR": 5e9,
    "QDR": 10e9,
    "FDR10": 10e9,
    "FDR": 14e9,
    "EDR": 25e9,
    "HDR": 50e9,
    "NDR": 100e9,
    "XDR": 200e9,
}
_SIGNAL_GBIT_PER_S = {  # what iblinkinfo prints: the lane's signalling rate
    2.5: "SDR",
    5.0: "DDR",
    10.0: "QDR",
    10.3125: "FDR10",
    14.0625: "FDR",
    25.78125: "EDR",
    53.125: "HDR",
    106.25: "NDR",
    212.5: "XDR",
}
_WIDTHS = ("1", "2", "4", "8", "12")
_LANES = re.compile(r"(\d{1,2})[xX] ?([A-Z]{3}(?:10)?)")
_GBIT = re.compile(r"(\d{1,5}(?:\.\d{1,3})?)(?: ?Gb/sec)?(?: \((\d{1,2}X)(?: ([A-Z]{3}(?:10)?))?\))?")


def lanes_bytes_per_s(text: str) -> float | None:
    """
    Bytes/s of '4xNDR' or '4X NDR'; None where width or name is not one we know.

    >>> lanes_bytes_per_s("4xNDR")
    50000000000.0
    """
    match = _LANES.fullmatch(text.strip())
    if match is None or match[1] not in _WIDTHS or match[2] not in LANE_BITS_PER_S:
        return None
    return int(match[1]) * LANE_BITS_PER_S[match[2]] / 8


def signal_bytes_per_s(lanes: str, gbit_per_s: str) -> float | None:
    """
    Bytes/s of data on `lanes` lanes that signal at `gbit_per_s` each; None where it is not a rate we know.

    >>> signal_bytes_per_s("4", "25.78125")
    12500000000.0
    """
    name = _SIGNAL_GBIT_PER_S.get(float(gbit_per_s))
    return None if name is None else lanes_bytes_per_s(f"{lanes}x{name}")


def port_bytes_per_s(text: str) -> float | None:
    """
    Bytes/s of '400 Gb/sec (4X NDR)' (sysfs, ibstatus) or '200' (ibstat, in Gb/s); None for none, or zero.

    >>> port_bytes_per_s("400 Gb/sec (4X NDR)")
    50000000000.0
    """
    match = _GBIT.fullmatch(text.strip())
    return float(match[1]) * 1e9 / 8 or None if match else None


def human_port(bytes_per_s: float) -> str:
    """
    >>> human_port(50e9)
    '400 Gb/s'
    """
    return f"{bytes_per_s * 8 / 1e9:g} Gb/s"
