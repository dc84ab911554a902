"""Human text to SI and back: SI inside the program, text only at its edge.

Bandwidth is per direction; GB = 10^9 bytes.
"""

import math
import re

from planner.base.errors import BadInput

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_PREFIX = _DECIMAL | _BINARY
_NUMBER = r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*"
_QUANTITY = re.compile(_NUMBER + r"([KMGTP]i|[kKMGTP])?(.*?)\s*")
# the micro sign and the Greek letter look alike
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0}
_TIME = re.compile(_NUMBER + f"({'|'.join(_SECONDS)})" + r"\s*")


def is_whole(text: str) -> bool:
    r"""Whether the text is a whole number in ASCII digits: other scripts have digits that Python counts too.

    >>> is_whole("12"), is_whole("1_2"), is_whole("\u0661")
    (True, False, False)
    """
    return text.isascii() and text.isdecimal()


def _parse(text: object, units: dict[str, float], example: str) -> float:
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    value = float(match[1]) * _PREFIX[match[2] or ""] * units.get(match[3], math.nan) if match else math.nan
    if not math.isfinite(value):
        raise BadInput(f"cannot read {text!r} as a quantity; write it like '{example}'")
    return value


def parse_bandwidth(text: object) -> float:
    """Bytes per second of '450 GB/s' or '400 Gb/s' (bits; also 'Gbit/s', 'Gbps')."""
    return _parse(text, {"B/s": 1, "b/s": 1 / 8, "bit/s": 1 / 8, "bps": 1 / 8}, "450 GB/s' or '400 Gb/s")


def parse_bytes(text: object) -> float:
    """Bytes of '80 GB' or '64 GiB'."""
    return _parse(text, {"B": 1}, "80 GB")


def parse_flops(text: object) -> float:
    """Operations per second of '989 TFLOP/s'."""
    return _parse(text, {"FLOP/s": 1, "FLOPS": 1}, "989 TFLOP/s")


def parse_seconds(text: object) -> float:
    """Seconds of '3 us', '1.5 ms' or '2 s'."""
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    value = float(match[1]) * _SECONDS[match[2]] if match else math.nan
    if not math.isfinite(value):
        raise BadInput(f"cannot read {text!r} as a time; write it like '3 us'")
    return value


def _human(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    rounded = abs(float(f"{value:.3g}"))  # 999.6 kB is 1 MB, not 1e+03 kB
    scale, unit = next((step for step in steps if rounded >= step[0]), steps[-1])
    return f"{value / scale:.3g} {unit}" if rounded < 1000 * scale else f"{value / scale:,.0f} {unit}"


def human_bytes(value: float) -> str:
    """
    >>> human_bytes(44_040_192)
    '44 MB'
    """
    return _human(value, ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")))


def human_bandwidth(value: float) -> str:
    """
    >>> human_bandwidth(50e9)
    '50 GB/s'
    """
    return human_bytes(value) + "/s"


def human_seconds(value: float) -> str:
    """
    >>> human_seconds(7.7e-5)
    '77 us'
    """
    return _human(value, ((1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")))
