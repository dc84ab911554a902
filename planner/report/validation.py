"""The outcome of a dispatch run as text: what held, what each phase took, and what the prediction was worth."""

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner.base import human_bytes, human_seconds

if TYPE_CHECKING:  # only the command line imports probes at run time
    from probes.dispatch.validation import Outcome


def validation_report(outcome: "Outcome") -> RenderableType:
    """Checks, phases and notes."""
    report = outcome.report
    layers = ", ".join(map(str, report.layer_ids))
    lines = [f"{'ok    ' if check.ok else 'FAILED'} {check.name}: {check.detail}" for check in report.checks]
    moved = f"the plan's dispatch moved {human_bytes(_moved(outcome))} between ranks"
    lines.append(f"{moved}, as predicted" if outcome.ok else f"{moved}, which is not what was planned")
    where = "GPUs" if report.device == "cuda" else "the CPU"
    return Group(
        Text(f"Layers {layers}, on {where}:"), Text("\n".join(lines)), phases_table(outcome), *_notes(outcome)
    )


def phases_table(outcome: "Outcome") -> Table:
    """Seconds of each phase; the ratio plan / default is what a prediction can be held against on any device."""
    measured, predicted = outcome.measured_seconds, outcome.predicted_seconds
    table = Table(
        title="Slowest rank, median of the repeats, plan and engine default interleaved", title_justify="left"
    )
    for name in (
        "phase",
        "plan",
        "default",
        "plan / default",
        "predicted plan",
        "predicted default",
        "predicted ratio",
    ):
        table.add_column(name, justify="left" if name == "phase" else "right")
    for phase in measured["plan"]:
        cells = []
        for seconds in (measured, predicted):
            plan, default = seconds["plan"][phase], seconds["baseline"][phase]
            cells += [
                human_seconds(plan),
                human_seconds(default),
                f"{plan / default:.2f}" if default else "-",
            ]
        table.add_row(phase, *cells)
    return table


def _moved(outcome: "Outcome") -> int:
    bytes_GG = outcome.report.bytes_GG["plan"]
    return int(bytes_GG.sum() - bytes_GG.trace())


def _notes(outcome: "Outcome") -> list[Text]:
    notes = [*outcome.report.notes, "predicted seconds are for the plan's GPUs and the model's own width"]
    return [Text(f"Note: {note}", style="dim") for note in notes]
