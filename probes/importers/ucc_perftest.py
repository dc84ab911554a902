"""Results of UCC's ucc_perftest: its head, then a row for each size or pattern.

Read in tools/perf/ucc_pt_benchmark.cc of openucx/ucc 8263de4, and held against what that build printed. It
does not print how many ranks ran. A row's time is that of the slowest rank (its column `max`); its size is
what rank 0 sends.
"""

import re

from planner.base import BadInput
from probes.base.facts import MeasureFacts, Sample
from probes.importers.text import utf8_text

LARGEST_BYTES = 8 << 20
_COLLECTIVE = re.compile(r"^Collective:[ \t]+(\w+)", re.MULTILINE)
_HEAD = re.compile(r"^[ \t]*Count[ \t]+Size[ \t]+Time, us([ \t]+Bus Bandwidth, GB/s)?[ \t]*$", re.MULTILINE)
_ROW = re.compile(r"^[ \t]*\d{1,18}[ \t]+(\d{1,18})((?:[ \t]+\d{1,12}\.\d\d){3,6})[ \t]*$", re.MULTILINE)
_END = "Total time:"
_UNKNOWN = ("over how many ranks it ran: ucc_perftest does not print it",)


def recognise(content: bytes, name: str) -> bool:
    """Whether this is output of ucc_perftest, whatever the file is called."""
    del name
    return b"Collective:" in content and b"Time, us" in content and b"Memory type:" in content


def read(content: bytes, name: str) -> tuple[MeasureFacts, ...]:
    """The runs in the file, in order. BadInput where none has a whole row."""
    if len(content) > LARGEST_BYTES:
        raise BadInput(f"{name}: {len(content):,} bytes are too many for a result of ucc_perftest")
    text = utf8_text(content, name)
    starts = [found.start() for found in _COLLECTIVE.finditer(text)]
    runs = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    facts = tuple(found for run in runs if (found := _facts(run, name)).samples)
    if not facts:
        raise BadInput(f"{name}: ucc_perftest printed no whole row; run it again and give its whole output")
    return facts


def _facts(run: str, name: str) -> MeasureFacts:
    collective, head = _COLLECTIVE.match(run), _HEAD.search(run)
    if collective is None:
        raise ValueError("a run begins with its collective")
    columns = 6 if head and head[1] else 3
    rows = _ROW.finditer(run, head.end()) if head else ()
    found = [(int(row[1]), [float(word) for word in row[2].split()]) for row in rows]
    samples = tuple(_sample(size, figures) for size, figures in found if len(figures) == columns)
    told = tuple(
        warning
        for warning, applies in (
            ("the run did not come to its end", _END not in run),
            ("a row has not the columns of its head, and is not used", len(samples) < len(found)),
        )
        if applies
    )
    return MeasureFacts(
        source=name,
        kind="ucc-perftest",
        collective=collective[1].lower(),
        ranks=0,
        samples=tuple(one for one in samples if one is not None),
        unknown=_UNKNOWN,
        warnings=told,
    )


def _sample(size: int, figures: list[float]) -> Sample | None:
    """None where nothing was sent. Both rates are those of the slowest rank's time."""
    seconds = figures[2] * 1e-6
    if not (size and seconds > 0):
        return None
    rate = size / seconds
    busbw = figures[5] * 1e9 if len(figures) > 3 else rate
    return Sample(size, seconds, rate, busbw, busbw, in_place=False)
