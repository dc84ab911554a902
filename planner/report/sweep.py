"""A sweep as an answer and a table: rows that fit by tokens/s a GPU, then what does not fit, and why."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner.base import human_seconds
from planner.planning import Ranked, Standing, Sweep
from planner.report.lines import fullest
from planner.report.sweep_answer import answer_lines
from planner.report.sweep_others import BAD, figures_of
from planner.report.tables import FOLDED, table_of

MARKS = {"~": "ties with the first", ">": "slower than --tpot", "!": "no engine serves it"}
NARROW: dict[str, Any] = {"box": None, "padding": (0, 1, 0, 0), "pad_edge": False}
HEADS = (
    "GB: left on a GPU; reqs: at full context, on GPUs of one request; NICs/2: tokens/s with NICs at half; "
    "F: lost GPUs of a group that leave every expert; eng: engines that serve; aTP: GPUs of one request."
)
SHOWN = 20  # rows of a table; JSON has all
CHOICES: dict[str, Callable[[Ranked], object]] = {  # shown where they differ
    "machine": lambda one: one.row.point.machine,
    "engine": lambda one: one.row.point.engine or "none",
    "tokens": lambda one: (
        one.row.figures.tokens_per_rank if one.row.figures else one.row.point.tokens_per_rank
    ),
    "transport": lambda one: one.row.figures and not one.row.point.sliced and one.row.figures.transport,
    "aTP": lambda one: one.row.point.attention_tp,
}
WORDS = ("machine", "engine", "transport", "layout", "limited by", "does not fit because")


def sweep_report(found: Sweep) -> RenderableType:
    """Answers of all phases, then their tables."""
    answers = [Text("\n".join(answer_lines(found, phase))) for phase in found.phases]
    tables = [part for phase in found.phases for part in _tables(found, phase)]
    return Group(*answers, *tables, Text("\n".join(_basis(found)), style="dim"))


def _basis(found: Sweep) -> list[str]:
    side = "held-out" if found.held_out else "fitted"
    errors = (
        f"error of a {phase} step: {error}"
        for phase, rows in found.phases.items()
        for error in fullest(one.row.figures.step.error for one in rows if one.row.figures)
    )
    return [
        f"{found.model.name}; load: {found.load.source}; figures on {side} load, placed by a fast method.",
        *(f"{text}." for text in errors),
        *_without_ep(found),
        HEADS,
        "Groups of a machine are alike and have it to themselves; the slowest counts where they differ.",
        *(f"Note: {note}" for note in found.notes),
    ]


def _without_ep(found: Sweep) -> list[str]:
    """What rows without expert parallelism are, and whether to believe them."""
    rows = [one.row for ranking in found.phases.values() for one in ranking if one.row.point.sliced]
    shares = [row.figures.step.error_share or 0.0 for row in rows if row.figures]
    if not shares:
        return []
    said = [
        "TP rows: without expert parallelism, a slice of every expert on each GPU of a group; no plan needed"
    ]
    if max(shares) > BAD:
        said.append(f"on this GPU they are {max(shares):.0%} off, too far to choose by")
    return ["; ".join(said) + "."]


def _tables(found: Sweep, phase: str) -> list[RenderableType]:
    rows = found.phases[phase]
    fitting = [one for one in rows if one.row.figures is not None]
    refused = [one for one in rows if one.row.figures is None]
    parts: list[RenderableType] = [_fitting(phase, fitting)] if fitting else []
    return [*parts, *([_refused(phase, refused)] if refused else [])]


def _fitting(phase: str, rows: list[Ranked]) -> Table:
    differing = {name: of for name, of in CHOICES.items() if len({of(one) for one in rows} - {False}) > 1}
    names = ("layout", *differing, "R", "tok/s/GPU", "step", "GB", "reqs", "limited by", "NICs/2", "F", "eng")
    cells = [
        (one.row.point.layout, *(str(of(one) or "-") for of in differing.values()), *_cells(one))
        for one in rows[:SHOWN]
    ]
    more = f", {len(rows) - SHOWN} more in --json" if len(rows) > SHOWN else ""
    marks = dict.fromkeys(mark for one in rows[:SHOWN] if (mark := _mark(one)))
    legend = "".join(f"; {mark} {MARKS[mark]}" for mark in marks)
    title = f"{phase}, best first{more}{legend}"
    return table_of(names, cells, words=WORDS, title=title, columns=FOLDED, **NARROW)


def _mark(one: Ranked) -> str:
    if one.standing == Standing.MEETS:
        return "~" if one.tie else ""
    return {Standing.SLOW: ">", Standing.UNSERVED: "!"}[one.standing]


def _cells(one: Ranked) -> tuple[str, ...]:
    figures = figures_of(one.row)
    halved = figures.nics_halved
    serving = sum(service.serves for service in figures.services)
    return (
        "-" if one.row.point.sliced else str(figures.redundant),
        f"{_mark(one)}{figures.tokens_per_s_per_gpu:,.0f}",
        human_seconds(figures.step.total_seconds),
        f"{figures.memory_left_bytes / 1e9:.1f}",
        f"{figures.requests:,}",
        figures.bottleneck,
        "-" if halved is None else f"{halved / figures.tokens_per_s_per_gpu - 1:+.0%}",
        str(figures.survives),
        f"{serving}/{len(figures.services)}",
    )


def _refused(phase: str, rows: list[Ranked]) -> Table:
    """A row for each reason: choices that change nothing about it are one.

    Slices weigh as much as whole experts: where these do not fit, slices are not said again.
    """
    whole = {(one.row.point.machine, one.row.point.ep) for one in rows if not one.row.point.sliced}
    told = [
        one
        for one in rows
        if not one.row.point.sliced or (one.row.point.machine, one.row.point.ep) not in whole
    ]
    reasons = dict.fromkeys((one.row.point.machine, one.row.point.layout, _short(one)) for one in told)
    machines = {machine for machine, _, _ in reasons}
    cells = [
        (f"{machine}: {layout}" if len(machines) > 1 else layout, why) for machine, layout, why in reasons
    ]
    names = ("layout", "does not fit because")
    return table_of(names, cells, words=WORDS, title=f"{phase}, does not fit", columns=FOLDED, **NARROW)


def _short(one: Ranked) -> str:
    """The first sentence: --json has where the memory goes."""
    return one.row.why_not.partition(". ")[0]


def sweep_value(found: Sweep) -> dict[str, Any]:
    """For JSON: every row, in order."""
    return {
        "schema": "moeplan/sweep/1",
        "model": found.model.name,
        "load": found.load.source,
        "judged_on": "held-out" if found.held_out else "fitted",
        "tpot_seconds": found.tpot_seconds,
        "answers": {phase: answer_lines(found, phase)[0] for phase in found.phases},
        "phases": {phase: [_row_value(one) for one in rows] for phase, rows in found.phases.items()},
        "notes": list(found.notes),
    }


def _row_value(one: Ranked) -> dict[str, Any]:
    point = one.row.point
    value: dict[str, Any] = {
        "standing": one.standing.name.lower(),
        "tie": one.tie,
        "machine": point.machine,
        "experts": "tp" if point.sliced else "ep",
        "ep": point.ep,
        "groups": point.groups,
        "attention_tp": point.attention_tp,
        "asked_redundant": point.redundant,
        "engine": point.engine,
        "why_not": one.row.why_not,
    }
    figures = one.row.figures
    if figures is None:
        return value
    told = asdict(figures)
    step = told.pop("step")
    seconds = {"seconds": dict(step["seconds"]), "step_seconds": figures.step.total_seconds}
    error = {"error_share": step["error_share"], "error": step["error"]}
    return {**value, "tokens_per_s_per_gpu": figures.tokens_per_s_per_gpu, **seconds, **error, **told}
