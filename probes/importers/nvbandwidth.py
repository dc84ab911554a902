"""NVIDIA's nvbandwidth, text or JSON (-j): names and addresses of GPUs, and what copies between them reach.

A copy of one pair at a time is no all-to-all: its rates are told beside the machine, and replace none.

    Device 0: NVIDIA H100 80GB HBM3 (00000000:1b:00)
    Running device_to_device_memcpy_read_ce.
    memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
               0         1
     0       N/A    390.12
     1    390.34       N/A
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from planner.base import BadInput, parse_json
from planner.topology import LARGEST_NODE_GPUS
from probes.base.facts import GpuFact, HostFacts
from probes.importers.text import utf8_text

KIND = "nvbandwidth"
LARGEST_TEXT = 8 << 20
_WORDS = (b"nvbandwidth", b"device_to_device", b"memcpy CE")
_DEVICE = re.compile(
    r"(?m)^[ \t>]{0,16}(?:Process \d{1,6} \((?P<host>[\w.-]{1,255})\): [Dd]evice|Device) (?P<index>\d{1,4}): "
    r"(?P<name>[^\n(]{2,80}?)"
    r"(?: \((?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.[0-7])?\))?[ \t]*$"
)
_LISTED = re.compile(
    r"(\d{1,4}): ([^\n(]{2,80}?)(?: \(([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.[0-7])?\))?"
)
_RUN = re.compile(r"(?m)^[ \t>]{0,16}Running (?P<name>[\w.]{3,80}?)\.?[ \t]*$")
_ROW = re.compile(r"(?m)^[ \t>]{0,16}\d{1,4}[ \t]+((?:(?:N/A|\d{1,6}\.\d{1,3})(?:[ \t]+|$)){1,1024})$")
Devices = dict[str | None, dict[int, tuple[str, str | None]]]  # host -> index -> name, PCI address
Rates = dict[str, list[float]]  # test -> GB/s of every pair


def recognise(content: bytes, name: str) -> bool:
    del name
    head = content[:LARGEST_TEXT]
    return b"nvbandwidth" in head and any(word in head for word in (b"testcases", b"Device", b"memcpy"))


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """The hosts of the run. BadInput where it is no whole JSON, or names no GPU."""
    text = utf8_text(content[:LARGEST_TEXT], name)
    is_json = text.lstrip().startswith("{")
    devices, rates = _of_json(parse_json(text, name), name) if is_json else _of_text(text)
    if not devices:
        raise BadInput(
            f"{name}: names no GPU; give the whole output of nvbandwidth, with its lines 'Device 0: ...'"
        )
    told = tuple(_rate_words(rates))
    most = max(
        (round(len(numbers) ** 0.5 + 0.5) for test, numbers in rates.items() if _is_between(test)), default=0
    )
    seen = sum(map(len, devices.values()))
    lost = (
        (f"{most} GPUs copied to each other, {seen} are named: the text is damaged",) if most > seen else ()
    )
    facts = []
    for host, mine in devices.items():
        if max(mine) >= LARGEST_NODE_GPUS:
            raise BadInput(
                f"{name}: device {max(mine)} of one host; a host has at most {LARGEST_NODE_GPUS} GPUs"
            )
        gpus = tuple(GpuFact(at, mine[index][0], pci=mine[index][1]) for at, index in enumerate(sorted(mine)))
        gap = sorted(mine) != list(range(len(mine)))
        unknown = (
            (f"devices {', '.join(map(str, sorted(mine)))} only are named; there may be others",)
            if gap
            else ()
        )
        facts.append(
            HostFacts(name, KIND, "imported", host, gpus=gpus, unknown=(*unknown, *lost), warnings=told)
        )
    return tuple(facts)


def _of_text(text: str) -> tuple[Devices, Rates]:
    devices: Devices = {}
    for found in _DEVICE.finditer(text):
        pci = _address(found["pci"])
        devices.setdefault(found["host"], {}).setdefault(int(found["index"]), (found["name"].strip(), pci))
    rates: Rates = {}
    runs = list(_RUN.finditer(text))
    for run, end in zip(runs, [*(one.start() for one in runs[1:]), len(text)], strict=False):
        numbers = [
            float(word)
            for row in _ROW.finditer(text, run.end(), end)
            for word in row[1].split()
            if word != "N/A"
        ]
        if numbers:
            rates[run["name"]] = numbers
    return devices, rates


def _of_json(value: Any, name: str) -> tuple[Devices, Rates]:
    report = value.get("nvbandwidth") if isinstance(value, dict) else None
    if not isinstance(report, dict):
        raise BadInput(f"{name}: the JSON has no object 'nvbandwidth'; give what 'nvbandwidth -j' prints")
    listed = next(
        (value for key, value in report.items() if "device" in key.lower() and isinstance(value, list)), []
    )
    devices: Devices = {}
    for line in listed:
        match = _LISTED.fullmatch(line.strip()) if isinstance(line, str) else None
        if match:
            devices.setdefault(None, {})[int(match[1])] = match[2].strip(), _address(match[3])
    tests = report.get("testcases")
    rates = {}
    for test in tests if isinstance(tests, list) else ():
        numbers = list(_numbers(test)) if isinstance(test, dict) else []
        if numbers and isinstance(test.get("name"), str):
            rates[test["name"][:80]] = numbers
    return devices, rates


def _numbers(test: Mapping[str, Any]) -> Iterable[float]:
    rows = test.get("bandwidth_matrix")
    for row in rows if isinstance(rows, list) else ():
        for cell in row if isinstance(row, list) else ():
            if re.fullmatch(r"\d{1,6}(?:\.\d{1,9})?", str(cell)):
                yield float(str(cell))


def _rate_words(rates: Rates) -> Iterable[str]:
    """What copies between GPUs reached, test by test."""
    for test, numbers in rates.items():
        if _is_between(test):
            span = f"{min(numbers):.4g} to {max(numbers):.4g} GB/s"
            yield f"{test}: {span} a pair, one pair at a time; shown, not used: it is no all-to-all"


def _is_between(test: str) -> bool:
    """Whether it copies from GPU to GPU: n GPUs have n (n - 1) pairs."""
    return test.startswith("device_to_device")


def _address(text: str | None) -> str | None:
    """
    >>> _address("00000000:1B:00")
    '0000:1b:00.0'
    """
    return f"{text.lower()[-10:]}.0" if text else None
