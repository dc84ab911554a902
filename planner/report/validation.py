"""The outcome of a dispatch run as text: the answer, seconds of each phase beside the prediction, checks."""

from collections.abc import Collection, Iterator
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
    from probes.dispatch.verdict.figures import Figures, PhaseFigures


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
    judged = outcome.verdict.judged if outcome.verdict is not None else ()
    rows = [
        (one.phase, one.side, *_cells(one.whole, judged=one.phase in judged), _mean_error(one, judged))
        for one in outcome.phases
    ]
    names = ("phase", "side", "median", "p95", "predicted", "by bytes sent", "error", "layers: mean, bias")
    title = "Slowest rank over the repeats, sides in turns, layers added up"
    return table_of(names, rows, words=("phase", "side"), title=title)


def _cells(one: "Figures", *, judged: bool) -> tuple[str, ...]:
    """Seconds that are of another machine than the prediction have no error."""
    seconds = map(human_seconds, (one.median, one.p95, one.modelled, one.drawn))
    return (*seconds, _percent(one.error) if judged else "-")


def _mean_error(one: "PhaseFigures", judged: Collection[str]) -> str:
    text = f"{one.mape:.0%}, {one.bias:+.0%}".replace("%", " %")
    return text if one.phase in judged else "-"


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
        took = (
            *_cells(one.figures, judged=outcome.verdict is not None),
            _percent(one.figures.spread).lstrip("+"),
        )
        rows.append((str(one.layer_id), one.side, one.phase, *took, named, shown, slowest))
    names = ("layer", "side", "phase", "median", "p95", "predicted", "by bytes sent", "error", "spread")
    waits = ("predicted to wait for", "waited for", "slowest rank")
    return table_of((*names, *waits), rows, words=("side", "phase", *waits), title="By layer")


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
    scale = scope.emulated_scale
    emulated = "" if scale is None else f"; emulated, with rates divided by {scale:.4g}"
    run = f"{scope.tokens} tokens a rank, {scope.width} wide; {scope.repeats} repeats"
    return f"{layers}; {ranks}{emulated}; {run}"


def _checks(outcome: "Outcome") -> Iterator[str]:
    for check in outcome.report.checks:
        yield f"{'ok    ' if check.ok else 'FAILED'} {check.name}: {check.detail}"
    yield from _stragglers(outcome)
    if not outcome.report.counts_bytes:
        return
    bytes_GG = outcome.report.bytes_GG["plan"]
    moved = human_bytes(int(bytes_GG.sum() - bytes_GG.trace()))
    right = "as predicted" if outcome.report.ok else "which is not what was planned"
    yield f"the plan's dispatch moved {moved} between ranks, {right}"


def _notes(outcome: "Outcome") -> list[Text]:
    notes = [*outcome.report.notes, "predicted seconds are for the plan's GPUs, at the width of this run"]
    return [Text(f"Note: {note}", style="dim") for note in notes]
