"""The answer in five lines, as `solve` prints it, and the warnings."""

from typing import Any

from planner.page.html import Content, Html, markup, tag
from planner.page.told import Told
from planner.report.answer import Answered, Asked, Moved, answer_lines, moves_line
from planner.report.details import WARNING
from planner.report.verdict import Contest, Rival

TITLE = "Answer"


def section(told: Told) -> Content:
    warnings = [note for note in told.value.get("notes", ()) if note.startswith(WARNING)]
    others = [tag("p", note, class_="warn") for note in (*warnings, *_doubts(told))]
    return [answer_list(lines_of(told)), others]


def lines_of(told: Told) -> list[str]:
    gap = told.value["bound"].get("gap_seconds_share", 0.0)
    moves = _moves(told.value.get("moves"), told)
    found = Answered(told.problem, told.engine, told.judged, contest_of_file(told), gap, moves)
    return answer_lines(found, Asked(told.file))


def answer_list(lines: list[str]) -> Html:
    """Each line's first word names it."""
    split = [" ".join(line.split()).partition(" ") for line in lines]
    return tag("dl", [[tag("dt", name), tag("dd", text)] for name, _, text in split], class_="answer")


def contest_of_file(told: Told) -> Contest:
    """The plan beside the baselines of its file; beside the default as it is worked out here where it has
    none.
    """
    held_out, survive = told.held_out is not None, told.problem.survive
    rivals = tuple(
        Rival(
            (one[told.side] or one["fitted"])["total_seconds"],
            one["name"],
            bool(one["survives"]) or survive is None,
        )
        for one in told.value["predicted"].get("baselines", ())
    )
    if not rivals:
        rivals = (Rival(told.default_cost.total_seconds, "engine default, same R", survive is None),)
    return Contest(told.judged.total_seconds, held_out, survive, rivals)


def _moves(value: Any, told: Told) -> str:
    """A re-plan's line; nothing for a plan that does not come from another, or whose file does not say."""
    names = ("moved_slots", "bytes", "seconds", "read_bytes")
    if not isinstance(value, dict) or not all(isinstance(value.get(name), (int, float)) for name in names):
        return ""
    reads = value.get("reads")
    count = len(reads) if isinstance(reads, list) else 0
    moved, sent, seconds, read = (value[name] for name in names)
    return moves_line(Moved(moved, told.placement.expert_LP.size, sent, seconds, count, read))


def _doubts(told: Told) -> Content:
    return [markup(f"This file was written by another moeplan: {doubt}.") for doubt in told.doubts]
