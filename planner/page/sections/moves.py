"""What a re-plan moves: waves of transfers, and when they have paid. Nothing for a plan from scratch."""

from typing import Any

from planner.base import human_bytes, human_seconds
from planner.page.document import paragraphs
from planner.page.html import Content, figure
from planner.page.tables import folded_table
from planner.page.told import Told

TITLE = "Moves"
FIGURES = ("moved_slots", "share", "bytes", "most_received_bytes", "seconds", "read_bytes")


def section(told: Told) -> Content | None:
    moves = told.value.get("moves")
    if not isinstance(moves, dict) or not all(_number(moves.get(name)) for name in FIGURES):
        return None
    moved, sent = moves["moved_slots"], human_bytes(moves["bytes"])
    rest = (
        f" slots get another expert ({moves['share']:.1%}), {sent} over the links in "
        f"{human_seconds(moves['seconds'])}; {human_bytes(moves['read_bytes'])} read from disk. The busiest "
        f"receiver holds {human_bytes(moves['most_received_bytes'])} apart if all layers change at once."
    )
    head: Content = [
        f"From {moves.get('from', '?')}: ",
        figure(f"{moved:,}", moved, "moves.moved_slots"),
        rest,
    ]
    steps = moves.get("steps_to_pay")
    paid = f"They have paid after {steps:,.0f} steps." if _number(steps) else "They do not pay by themselves."
    return [paragraphs(head, paid), _waves(moves.get("waves"))]


def _waves(waves: Any) -> Content:
    if not isinstance(waves, list):
        return None
    found = [
        one
        for one in waves
        if isinstance(one, dict) and _number(one.get("bytes")) and _number(one.get("seconds"))
    ]
    rows = [
        [str(at), human_bytes(one["bytes"]), human_seconds(one["seconds"])] for at, one in enumerate(found)
    ]
    return folded_table(("wave", "bytes", "seconds"), rows, "In a wave no GPU sends or receives twice")


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
