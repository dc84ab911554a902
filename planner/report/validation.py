"""The outcome of a dispatch run as text: what held, what each phase took, what the prediction was worth."""

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner.base import human_bytes, human_seconds
from planner.report.tables import table_of

if TYPE_CHECKING:  # only the command line imports probes at run time
    from probes.dispatch.validation import Outcome


def validation_report(outcome: "Outcome") -> RenderableType:
    """Checks, phases and notes."""
    report = outcome.report
    layers = ", ".join(map(str, report.layer_ids))
    lines = [f"{'ok    ' if check.ok else 'FAILED'} {check.name}: {check.detail}" for check in report.checks]
    if report.counts_bytes:
        moved = f"the plan's dispatch moved {human_bytes(_moved(outcome))} between ranks"
        lines.append(f"{moved}, as predicted" if outcome.ok else f"{moved}, which is not what was planned")
    lines += _stragglers(outcome)
    where = "GPUs" if report.device == "cuda" else "the CPU"
    return Group(
        Text(f"Layers {layers}, on {where}:"), Text("\n".join(lines)), phases_table(outcome), *_notes(outcome)
    )


def phases_table(outcome: "Outcome") -> Table:
    """Seconds of each phase; plan / default is what a prediction can be held against on any device."""
    measured, predicted = outcome.measured_seconds, outcome.predicted_seconds
    rows = []
    for phase in measured["plan"]:
        cells = [phase]
        for seconds in (measured, predicted):
            plan, default = seconds["plan"][phase], seconds["default"][phase]
            ratio = f"{plan / default:.2f}" if default else "-"
            cells += [human_seconds(plan), human_seconds(default), ratio]
        rows.append(cells)
    found = ("plan", "default", "plan / default")
    names = ("phase", *found, "predicted plan", "predicted default", "predicted ratio")
    title = "Slowest rank, median of the repeats, plan and engine default interleaved"
    return table_of(names, rows, words=("phase",), title=title)


def _stragglers(outcome: "Outcome") -> list[str]:
    """Where one process played all ranks: the one whose experts took longest, beside the mean of all."""
    if len(outcome.report.timed_phases) > 1:
        return []
    lines = []
    for side, seconds_G in outcome.report.compute_seconds_G.items():
        rank, most, mean = int(seconds_G.argmax()), float(seconds_G.max()), float(seconds_G.mean())
        worked = f"experts of rank {rank} took longest: {human_seconds(most)}"
        lines.append(f"{side}: {worked}, {most / mean:.2f} times the mean of all {len(seconds_G)} ranks")
    return lines


def _moved(outcome: "Outcome") -> int:
    bytes_GG = outcome.report.bytes_GG["plan"]
    return int(bytes_GG.sum() - bytes_GG.trace())


def _notes(outcome: "Outcome") -> list[Text]:
    notes = [*outcome.report.notes, "predicted seconds are for the plan's GPUs, at the width of this run"]
    return [Text(f"Note: {note}", style="dim") for note in notes]
