"""The outcome of a dispatch run as text: the answer, seconds of each phase beside the prediction, checks."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner.base import human_bytes, human_seconds
from planner.report.tables import table_of

if TYPE_CHECKING:  # only the command line imports probes at run time
    from probes.dispatch.outcome import Outcome
    from probes.dispatch.verdict import Verdict
    from probes.dispatch.verdict.bottleneck import Wait
    from probes.dispatch.verdict.figures import Figures


def validation_report(outcome: "Outcome", *, details: bool = False) -> RenderableType:
    """The answer, the phases, what was waited for, checks and notes."""
    verdict = outcome.verdict
    parts: list[RenderableType] = [Text(outcome.answer), Text(""), phases_table(outcome)]
    if verdict is not None:
        parts += [Text(""), gains_table(verdict), Text(""), *map(Text, _reasons(outcome, verdict))]
    if details:
        parts += [Text(""), layers_table(outcome)]
    parts += [Text(""), Text(f"{_run(outcome)}:"), Text("\n".join(_checks(outcome))), *_notes(outcome)]
    return Group(*parts)


def phases_table(outcome: "Outcome") -> Table:
    """Seconds of each phase and side; the prediction by expectation, and by the bytes that were sent."""
    rows = [
        (one.phase, one.side, *_cells(one.whole), _mean_error(one.mape, one.bias)) for one in outcome.phases
    ]
    names = ("phase", "side", "median", "p95", "predicted", "by bytes sent", "error", "mean of layers")
    title = "Slowest rank over the repeats, sides in turns, layers added up"
    return table_of(names, rows, words=("phase", "side"), title=title)


def _cells(one: "Figures") -> tuple[str, ...]:
    seconds = map(human_seconds, (one.median, one.p95, one.modelled, one.drawn))
    return (*seconds, _percent(one.error))


def _mean_error(mape: float, bias: float) -> str:
    return f"{mape:.0%}, {bias:+.0%}".replace("%", " %")


def _percent(share: float) -> str:
    return f"{share:+.0%}".replace("%", " %")


def gains_table(verdict: "Verdict") -> Table:
    """The plan as a share of each other side."""
    words = {"none": "none promised", "untold": "too small to tell", "kept": "kept", "missed": "MISSED"}
    rows = [
        (
            one.name,
            one.against,
            f"{one.measured:.3f}",
            f"{one.low:.3f} to {one.high:.3f}",
            f"{one.promised:.3f}",
            f"{one.drawn:.3f}",
            f"{one.tolerance:.3f}",
            words[one.state],
        )
        for one in verdict.gains
    ]
    names = ("phase", "against", "measured", "95 %", "promised", "by bytes sent", "tolerance", "promise")
    title = "Plan / other side, repeat by repeat"
    return table_of(names, rows, words=("phase", "against", "promise"), title=title)


def layers_table(outcome: "Outcome") -> Table:
    """Each layer, side and phase, and what was waited for: named by the prediction, shown by the times."""
    rows = []
    for one in outcome.layers:
        named, shown, slowest = ("-", "-", "-") if one.wait is None else _wait(one.wait)
        took = (*_cells(one.figures), _percent(one.figures.spread).lstrip("+"))
        rows.append((str(one.layer_id), one.side, one.phase, *took, named, shown, slowest))
    names = ("layer", "side", "phase", "median", "p95", "predicted", "by bytes sent", "error", "spread")
    waits = ("predicted to wait for", "waited for", "slowest rank")
    return table_of((*names, *waits), rows, words=("side", "phase", *waits), title="By layer")


def _wait(wait: "Wait") -> tuple[str, str, str]:
    return wait.named, wait.shown or "not told", str(wait.slowest_rank)


def _reasons(outcome: "Outcome", verdict: "Verdict") -> Iterator[str]:
    waited = f"; it waited for {verdict.waited_for}" if verdict.waited_for else ""
    host = outcome.report.hosts[verdict.slowest_rank]
    yield f"Slowest: rank {verdict.slowest_rank} on {host}{waited}"
    waits = [one.wait for one in verdict.layers if one.wait is not None]
    agreed = sum(wait.agrees is True for wait in waits)
    if waits:
        yield f"Bottleneck: as predicted in {agreed} of {len(waits)} layers, sides and phases"
    for phase, tolerance in verdict.tolerances.items():
        yield f"Tolerance of {phase}: {tolerance.reason}"
    if outcome.to_do:
        yield f"To prove the cause: {outcome.to_do}"


def _run(outcome: "Outcome") -> str:
    report, scope = outcome.report, outcome.scope
    layers = f"Layer{'s' if len(report.layer_ids) > 1 else ''} {', '.join(map(str, report.layer_ids))}"
    hosts = len(set(report.hosts))
    where = "GPUs" if report.device == "cuda" else "the CPU"
    ranks = f"{len(report.hosts)} ranks on {where} of {hosts} host{'s' if hosts > 1 else ''}"
    return f"{layers}; {ranks}; {scope.tokens} tokens a rank, {scope.width} wide; {scope.repeats} repeats"


def _checks(outcome: "Outcome") -> Iterator[str]:
    for check in outcome.report.checks:
        yield f"{'ok    ' if check.ok else 'FAILED'} {check.name}: {check.detail}"
    bytes_GG = outcome.report.bytes_GG["plan"]
    moved = human_bytes(int(bytes_GG.sum() - bytes_GG.trace()))
    right = "as predicted" if outcome.report.ok else "which is not what was planned"
    yield f"the plan's dispatch moved {moved} between ranks, {right}"


def _notes(outcome: "Outcome") -> list[Text]:
    notes = [*outcome.report.notes, "predicted seconds are for the plan's GPUs, at the width of this run"]
    return [Text(f"Note: {note}", style="dim") for note in notes]
