"""The text that nccl-tests prints, of every generation since 2017, as people paste it: with prefixes, log lines inside rows, and cuts. Pure.

Rows are read by their shape (size, count, type, then numbers), not by column positions; the header says which numbers they are where it is there.
Every pattern is bounded, so that no line costs more than its length.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from probes.measure.nccl_table import ELEMENT_BYTES, Device, Half, Row, Table

LONGEST_LINE = 2000
_REDOPS = ("sum", "prod", "max", "min", "avg", "all", "none", "mulsum")
_COLUMNS = ("time", "algbw", "busbw", "#wrong")
_ANSI = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_NOISE = re.compile(r"[\w.-]{1,80}:\d{1,9}:\d{1,9} \[\d{1,4}\] (?:NCCL|RCCL) (?:INFO|WARN|TRACE).*")
_TAG = re.compile(
    r"\[\d{1,6}(?:,\d{1,6})?\](?:<std(?:out|err)>:?)?"
)  # of mpirun; '[0x1b]' and '[0000:1b:00]' are devices
_LABEL = re.compile(r"\s{0,20}\d{1,6}: ")  # of srun -l
_LEAD = re.compile(
    rf"(?<![\w.])(\d{{1,15}})\s{{1,40}}(\d{{1,15}})\s{{1,40}}({'|'.join(ELEMENT_BYTES)})(?![\w.])"
)
_RANK = re.compile(
    r"Rank\s{1,9}(\d{1,7})\s{1,9}(?:Group\s{1,9}(\d{1,7})\s{1,9})?Pid\s{1,9}\d{1,9} on\s{1,90}(\S{1,90}) device\s{1,9}(\d{1,4}) \[[^\]]{1,20}\](.{0,99})"
)
_HEADER = re.compile(r"size\s{1,40}count\s{1,40}type\s.{0,200}algbw\s{1,40}busbw")
_STARTING = re.compile(r"Collective test starting:\s{0,9}(\w{1,40})")
_PROGRAM = re.compile(r"(?:^|[\s/])([a-z]{1,20}(?:_[a-z]{1,20}){0,3}_perf)\s")
_AVERAGE = re.compile(r"Avg bus bandwidth\s{0,9}:\s{0,9}([0-9.eE+-]{1,20})")
_BOUNDS = re.compile(r"Out of bounds values\s{0,9}:\s{0,9}(\d{1,15})\s{1,9}FAILED")
_FAILURE = re.compile(
    r"Test (?:CUDA|NCCL) failure [^']{0,200}'[^']{0,200}'|Test timeout|Invalid number of GPUs.{0,80}|Test failure \S{1,80}"
)
_INTEGER = re.compile(r"-?\d{1,9}")
_NUMBER = re.compile(r"\d{1,20}(?:\.\d{0,20})?(?:[eE][+-]?\d{1,3})?\*?|-1|N/A|-?(?:nan|inf)")


@dataclass
class _Run:
    """One run while its lines are read."""

    name: str | None = None
    columns: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list)
    devices: list[Device] = field(default_factory=list)
    average: float | None = None
    warnings: list[str] = field(default_factory=list)
    closed: bool = False
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Open:
    """A row whose numbers have not all come yet."""

    line: int
    lead: tuple[str, str, str]
    words: tuple[str, ...]
    noisy: bool  # a log message was taken out of its line
    pieces: int = 1


def tables_of(text: str, source: str, hint: str) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    """The runs in a text, and the failures that it tells of."""
    runs = [_Run()]
    opened: _Open | None = None
    for number, line, noisy in _lines(text):
        run = _take_comment(runs, line, number)
        lead = None if "#" in line else _LEAD.search(line)
        words = tuple(line[lead.end() :].split()) if lead else tuple(line.split())
        if opened and not lead and words and all(_NUMBER.fullmatch(word) for word in words):
            opened = replace(opened, words=opened.words + words, pieces=opened.pieces + 1)
        elif lead or line.lstrip().startswith("#"):
            _close(run, opened, followed=True)
            opened = _Open(number, (lead[1], lead[2], lead[3]), words, noisy) if lead else None
        if opened and not _expects_more(run, opened):
            _close(run, opened)
            opened = None
    _close(runs[-1], opened)
    failures = tuple(dict.fromkeys(failure for run in runs for failure in run.failures))
    return tuple(_table(run, source, hint) for run in runs if run.rows or run.failures), failures


def _lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Line number, the line without colours, log messages and labels, and whether it had a log message."""
    for number, whole in enumerate(text.splitlines(), 1):
        line = _ANSI.sub("", whole[:LONGEST_LINE])
        kept = _NOISE.sub("", line)
        if kept != line:
            kept = _without_host(line, kept)
        label = _LABEL.match(kept)
        yield number, _TAG.sub(" ", kept[label.end() :] if label else kept), _NOISE.search(line) is not None


def _without_host(line: str, kept: str) -> str:
    """A log message that begins right behind a reduction's name takes that name for a part of its host: 'float     sumnode7:433:433 [5] NCCL INFO ...'."""
    rest = line[len(kept) :]
    redop = next((word for word in _REDOPS if rest.startswith(word)), "")
    return kept + redop if _LEAD.search(kept) else kept


def _take_comment(runs: list[_Run], line: str, number: int) -> _Run:
    """The run that this line belongs to, with what the line says about it."""
    run = runs[-1]
    started, header, program = _STARTING.search(line), _HEADER.search(line), _PROGRAM.search(line)
    if (
        ((started or "nThread" in line) and (run.closed or run.rows))
        or (header and run.rows)
        or (program and run.closed)
    ):
        run = _Run()
        runs.append(run)
    if started:
        run.name = started[1]
    elif program and run.name is None:
        run.name = program[1]
    if header:
        columns = tuple(line[header.start() :].split())
        whole = columns.count("time") == columns.count("algbw") == columns.count("busbw")
        run.columns = columns if whole else ()  # a header that lost a word names the wrong numbers
    device = _RANK.search(line)
    if device:
        run.devices.append(
            Device(int(device[1]), int(device[2] or 0), device[3], device[5].strip(), int(device[4]))
        )
    average, bounds, failure = _AVERAGE.search(line), _BOUNDS.search(line), _FAILURE.search(line)
    if average and _is_float(average[1]):
        run.average, run.closed = float(average[1]) * 1e9, True
    if bounds:
        run.warnings.append(
            f"line {number}: the run itself says that {bounds[1]} values arrived wrong; do not plan with it before that is understood"
        )
    if failure:
        run.failures.append(f"line {number}: {failure[0].strip()}")
    return run


def _numeric_columns(run: _Run) -> list[str]:
    """Names of the numbers of a row, in order. Without a header: those of a row of today."""
    if run.columns:
        return [column for column in run.columns[3:] if column != "redop"]
    return ["root", *_COLUMNS, *_COLUMNS]


def _expects_more(run: _Run, opened: _Open) -> bool:
    return len(_numbers(opened)) < len(_numeric_columns(run)) - (0 if run.columns else 1)


def _numbers(opened: _Open) -> tuple[str, ...]:
    return opened.words[1:] if opened.words and opened.words[0] in _REDOPS else opened.words


def _close(run: _Run, opened: _Open | None, *, followed: bool = False) -> None:
    """The open row becomes a row of the run, or a warning.

    Half a row at the end of the text is its first half, and so is half a row that a log message broke. Any other may be either half: it is left out.
    """
    if opened is None:
        return
    numbers, columns = _numbers(opened), _numeric_columns(run)
    if not run.columns and len(numbers) in (4, 8) and numbers[0] != "-1":
        columns = columns[1:]
    where = f"line {opened.line}"
    starts = [index for index, column in enumerate(columns) if column == "time"]
    halves = [
        _half(numbers[start : start + 4], in_place=bool(order)) for order, start in enumerate(starts[:2])
    ]
    found = tuple(half for half in halves if half is not None)
    size, count, dtype = opened.lead
    fits = (
        int(count) == 0 or int(size) % (int(count) * ELEMENT_BYTES[dtype]) == 0
    )  # a digit lost or overwritten
    either = (followed or opened.pieces > 1) and not opened.noisy and len(found) < len(halves)
    if either or not fits or (columns[0] == "root" and not _INTEGER.fullmatch(numbers[0] if numbers else "")):
        found = ()
    if opened.pieces > 1 and found:
        run.warnings.append(
            f"{where}: the row of size {size} was broken by other output and has been put together"
        )
    if len(found) < len(starts[:2]):
        what = "one measurement is" if found else "its measurements are"
        run.warnings.append(f"{where}: the row of size {size} is cut or unreadable: {what} missing")
    if found:
        redop = opened.words[0] if opened.words[0] in _REDOPS else ""
        run.rows.append(Row(where, int(size), int(count), dtype, redop, found))


def _half(words: tuple[str, ...], *, in_place: bool) -> Half | None:
    """Time in microseconds, algbw and busbw in GB/s (10^9), and #wrong."""
    if len(words) < 3 or not all(_is_float(word) for word in words[:3]):
        return None
    microseconds, algbw, busbw = map(float, words[:3])
    return Half(
        in_place, microseconds / 1e6, algbw * 1e9, busbw * 1e9, words[3].rstrip("*") if len(words) > 3 else ""
    )


def _is_float(word: str) -> bool:
    """Whether it is a finite, non-negative number."""
    try:
        return 0 <= float(word) < 1e15
    except ValueError:
        return False


def _table(run: _Run, source: str, hint: str) -> Table:
    warnings = (*run.warnings, *(f"the run failed at {failure}" for failure in run.failures[:1]))
    return Table(source, hint, run.name, tuple(run.rows), tuple(run.devices), run.average, None, warnings)
