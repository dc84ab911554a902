"""The whole step as a table for a terminal, and in the few words of an answer's line."""

from rich.console import RenderableType
from rich.text import Text

from planner.base import human_seconds
from planner.bounds import PARTS
from planner.cost import Cost, WholeStep, whole_step
from planner.problem import Problem
from planner.report.tables import table_of


def whole_parts(problem: Problem, judged: Cost, engine: str | None) -> list[RenderableType]:
    """Seconds by part with what they come to, and what they rest on."""
    found = whole_step(problem, judged, engine)
    rows = [
        (_named(part), human_seconds(seconds), f"{seconds / found.total_seconds:.0%}")
        for part, seconds in found.seconds.items()
        if seconds
    ]
    table = table_of(
        ("part of the whole step", "time", "share"),
        rows,
        words=("part of the whole step",),
        title=duration(found),
    )
    first = human_seconds(found.ttft_seconds)
    served = f"{found.tokens_per_s_per_gpu:,.0f} tokens/s a GPU; first token after {first}"
    lines = [
        f"{served} ({found.ttft_error})",
        f"error of the whole step: {found.error}; other parts: {found.basis}",
    ]
    return [table, Text("\n".join(lines))]


def duration(found: WholeStep) -> str:
    """TPOT in decode, with the error that was measured on this GPU."""
    name = "a step" if found.tpot_seconds is None else "TPOT"
    seconds = human_seconds(found.total_seconds)
    return f"{name} {seconds}" + ("" if found.error_share is None else f" ± {found.error_share:.0%}")


def longest(found: WholeStep) -> tuple[str, float]:
    """The part that takes longest, and its share of the step."""
    part = max(found.seconds, key=lambda name: (found.seconds[name], name))
    return part, found.seconds[part] / found.total_seconds


def _named(part: str) -> str:
    """What engines hide behind other work is off the expert layers' own time, so it is called otherwise."""
    return f"{part} not hidden" if part in PARTS else part
