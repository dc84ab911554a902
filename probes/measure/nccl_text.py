"""The text that nccl-tests prints, of every generation since 2017, as people paste it. Pure.

People paste it with prefixes, log lines inside rows, and cuts. Rows are read by their shape (size, count,
type, then numbers), not by column positions; the header says which numbers they are where it is there. Every
pattern is bounded, so that no line costs more than its length.
"""

import re
from dataclasses import dataclass, field, replace

from probes.measure.nccl_lines import Line, lines_of
from probes.measure.nccl_rows import OpenRow, close_row, continues, is_float, open_row
from probes.measure.nccl_table import Device, Row, Table

_RANK = re.compile(
    r"Rank\s{1,9}(\d{1,7})\s{1,9}(?:Group\s{1,9}(\d{1,7})\s{1,9})?Pid\s{1,9}\d{1,9} on\s{1,90}(\S{1,90}) "
    r"device\s{1,9}(\d{1,4}) \[[^\]]{1,20}\](.{0,99})"
)
_HEADER = re.compile(r"size\s{1,40}count\s{1,40}type\s.{0,200}algbw\s{1,40}busbw")
_STARTING = re.compile(r"Collective test starting:\s{0,9}(\w{1,40})")
_PROGRAM = re.compile(r"(?:^|[\s/])([a-z]{1,20}(?:_[a-z]{1,20}){0,3}_perf)\s")
_AVERAGE = re.compile(r"Avg bus bandwidth\s{0,9}:\s{0,9}([0-9.eE+-]{1,20})")
_BOUNDS = re.compile(r"Out of bounds values\s{0,9}:\s{0,9}(\d{1,15})\s{1,9}FAILED")
_FAILURE = re.compile(
    r"Test (?:CUDA|NCCL) failure [^']{0,200}'[^']{0,200}'|"
    r"Test timeout|Invalid number of GPUs.{0,80}|Test failure \S{1,80}"
)


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

    def close(self, opened: OpenRow | None, *, followed: bool = False) -> None:
        """The open row becomes a row of the run, or a warning."""
        if opened is not None:
            row, warnings = close_row(opened, self.columns, followed=followed)
            self.warnings += warnings
            self.rows += [row] if row else []

    def table(self, source: str, hint: str) -> Table:
        warnings = (*self.warnings, *(f"the run failed at {failure}" for failure in self.failures[:1]))
        rows, devices = tuple(self.rows), tuple(self.devices)
        return Table(source, hint, self.name, rows, devices, self.average, None, warnings)


def tables_of(text: str, source: str, hint: str) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    """The runs in a text, and the failures that it tells of."""
    runs = [_Run()]
    opened: OpenRow | None = None
    for line in lines_of(text):
        run = _run_of(runs, line.text)
        _take_comment(run, line)
        begun = open_row(line)
        if opened and (more := continues(line)):
            opened = replace(opened, words=opened.words + more, pieces=opened.pieces + 1)
        elif begun or line.text.lstrip().startswith("#"):
            run.close(opened, followed=True)
            opened = begun
        if opened and not opened.expects_more(run.columns):
            run.close(opened)
            opened = None
    runs[-1].close(opened)
    failures = tuple(dict.fromkeys(failure for run in runs for failure in run.failures))
    return tuple(run.table(source, hint) for run in runs if run.rows or run.failures), failures


def _run_of(runs: list[_Run], line: str) -> _Run:
    """The run that this line belongs to, with the name and the columns that it gives the run."""
    run = runs[-1]
    started, header, program = _STARTING.search(line), _HEADER.search(line), _PROGRAM.search(line)
    restarts = (started or "nThread" in line) and (run.closed or run.rows)
    if restarts or (header and run.rows) or (program and run.closed):
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
    return run


def _take_comment(run: _Run, line: Line) -> None:
    """What the line says about the run: a device, the average, wrong values, a failure."""
    text = line.text
    if device := _RANK.search(text):
        rank, group, index = int(device[1]), int(device[2] or 0), int(device[4])
        run.devices.append(Device(rank, group, device[3], device[5].strip(), index))
    average = _AVERAGE.search(text)
    if average and is_float(average[1]):
        run.average, run.closed = float(average[1]) * 1e9, True
    if bounds := _BOUNDS.search(text):
        wrong = f"the run itself says that {bounds[1]} values arrived wrong"
        run.warnings.append(f"line {line.number}: {wrong}; do not plan with it before that is understood")
    if failure := _FAILURE.search(text):
        run.failures.append(f"line {line.number}: {failure[0].strip()}")
