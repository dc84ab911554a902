"""The lines of what nccl-tests prints, freed of what other programs put between and before them. Pure.

Every pattern is bounded, so that no line costs more than its length.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from probes.measure.nccl_table import ELEMENT_BYTES

LONGEST_LINE = 2000
REDOPS = ("sum", "prod", "max", "min", "avg", "all", "none", "mulsum")
_ANSI = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_NOISE = re.compile(r"[\w.-]{1,80}:\d{1,9}:\d{1,9} \[\d{1,4}\] (?:NCCL|RCCL) (?:INFO|WARN|TRACE).*")
# of mpirun; '[0x1b]' and '[0000:1b:00]' are devices
_TAG = re.compile(r"\[\d{1,6}(?:,\d{1,6})?\](?:<std(?:out|err)>:?)?")
_LABEL = re.compile(r"\s{0,20}\d{1,6}: ")  # of srun -l
_TYPES = "|".join(ELEMENT_BYTES)
_LEAD = re.compile(rf"(?<![\w.])(\d{{1,15}})\s{{1,40}}(\d{{1,15}})\s{{1,40}}({_TYPES})(?![\w.])")


@dataclass(frozen=True)
class Line:
    """A line without colours, log messages and labels; `noisy` where it had a log message."""

    number: int
    text: str
    noisy: bool
    lead: "re.Match[str] | None"  # size, count and type, with which a row begins


def lines_of(text: str) -> Iterator[Line]:
    for number, whole in enumerate(text.splitlines(), 1):
        line = _ANSI.sub("", whole[:LONGEST_LINE])
        kept = _NOISE.sub("", line)
        if kept != line:
            kept = _without_host(line, kept)
        label = _LABEL.match(kept)
        plain = _TAG.sub(" ", kept[label.end() :] if label else kept)
        lead = None if "#" in plain else _LEAD.search(plain)
        yield Line(number, plain, _NOISE.search(line) is not None, lead)


def _without_host(line: str, kept: str) -> str:
    """Give back a reduction's name that a log message right behind it takes for a part of its host.

    'float     sumnode7:433:433 [5] NCCL INFO ...' begins so.
    """
    rest = line[len(kept) :]
    redop = next((word for word in REDOPS if rest.startswith(word)), "")
    return kept + redop if _LEAD.search(kept) else kept
