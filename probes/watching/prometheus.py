"""Prometheus' text format, read: the samples of some metrics with their labels."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from planner.base import BadInput

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*")
_LABEL = re.compile(r'([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"')


class Sample(NamedTuple):
    name: str
    labels: Mapping[str, str]
    value: float


def samples(content: bytes, where: str, *names: str) -> list[Sample]:
    """Those of the named metrics, in order. BadInput where this is no such text."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{where}: the answer is no Prometheus text") from error
    found = list(_samples(text))
    if not found and text.strip():
        raise BadInput(f"{where}: the answer is no Prometheus text ({' '.join(text.split())[:60]})")
    return [sample for sample in found if sample.name in names]


def _samples(text: str) -> Iterator[Sample]:
    for line in text.splitlines():
        match = _SAMPLE.fullmatch(line)
        value = _number(match[3]) if match else math.nan
        if match and math.isfinite(value):
            yield Sample(match[1], dict(_LABEL.findall(match[2] or "")), value)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
