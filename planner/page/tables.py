"""Tables of a page: of figures, and heat maps, which are tables whose cells have a colour.

A heat map is read by keyboard, cell by cell (`page.js`); every cell holds its figure as text, so that a
reader who sees no colours loses nothing.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from planner.page.html import Content, Html, markup, tag

Floats = npt.NDArray[Any]
NUMBERED = 16  # columns up to which a heat map shows its figures
WORST = 12  # rows before the others are folded away


def table_of(
    names: Sequence[Content], rows: Sequence[Sequence[Content]], caption: str, words: Collection[int] = (0,)
) -> Html:
    """Columns whose number is in `words` are words, all others figures. The first names its row."""
    aligned = [None if column in words else "n" for column in range(len(names))]
    head = [tag("th", name, scope="col", class_=side) for name, side in zip(names, aligned, strict=True)]
    body = [
        [
            tag("td" if column else "th", cell, class_=side, scope=None if column else "row")
            for column, (cell, side) in enumerate(zip(row, aligned, strict=True))
        ]
        for row in rows
    ]
    inside = [
        tag("caption", caption),
        tag("thead", tag("tr", head)),
        tag("tbody", [tag("tr", row) for row in body]),
    ]
    return scrolled(tag("table", inside), caption)


def folded_table(
    names: Sequence[Content],
    rows: Sequence[Sequence[Content]],
    caption: str,
    words: Collection[int] = (0,),
    shown: int = WORST,
) -> Html:
    """The first rows, and the others folded away below them."""
    if len(rows) <= shown + 1:
        return table_of(names, rows, caption, words)
    head = table_of(names, rows[:shown], f"{caption} (the first {shown} of {len(rows):,})", words)
    rest = table_of(names, rows[shown:], f"{caption} (the other {len(rows) - shown:,})", words)
    return markup([head, fold(f"the other {len(rows) - shown:,} rows", rest)])


class Scale(NamedTuple):
    """How figures of a heat map are said, and coloured."""

    say: Callable[[float], str]  # digits alone: it is not escaped
    level: Callable[[Floats], npt.NDArray[np.int64]]
    letter: str = "s"  # s: more is darker; d: from below even to above it


def heat_map(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[tuple[str, Floats]],
    scale: Scale,
    *,
    shown: int = WORST,
    corner: str = "layer",
) -> Html:
    """A row of figures for each name, the first of them in sight."""
    if len(rows) <= shown + 1:
        return _heat(caption, columns, rows, scale, corner)
    first = f"{caption} (the first {shown} of {len(rows):,} rows)"
    others = f"the other {len(rows) - shown:,} rows"
    return markup(
        [
            _heat(first, columns, rows[:shown], scale, corner),
            fold(others, _heat(others, columns, rows[shown:], scale, corner)),
        ]
    )


def _heat(
    caption: str, columns: Sequence[str], rows: Sequence[tuple[str, Floats]], scale: Scale, corner: str
) -> Html:
    names = [tag("th", tag("i", name), scope="col") for name in columns]
    head = tag("tr", tag("th", corner, scope="col"), names)
    lines = []
    for name, values in rows:
        told = zip(values.tolist(), scale.level(values).tolist(), strict=True)
        cells = "".join(f'<td class="{scale.letter}{level}">{scale.say(value)}</td>' for value, level in told)
        lines.append(f"<tr>{tag('th', name, scope='row')}{cells}</tr>")
    dense = len(columns) > NUMBERED
    inside = [tag("caption", caption), tag("thead", head), tag("tbody", Html("".join(lines)))]
    drawn = tag("table", inside, class_="heat dense" if dense else "heat")
    button = (
        tag("button", "figures", type="button", class_="numbers", aria_pressed="false") if dense else None
    )
    told_below = tag("p", "", class_="says", aria_live="polite")
    return tag("div", scrolled(drawn, caption), button, told_below, class_="map")


def scrolled(content: Html, name: str) -> Html:
    """What is wider than the page scrolls by itself, also by keyboard."""
    return tag("div", content, class_="scroll", tabindex="0", role="region", aria_label=name)


def fold(summary: Content, *content: Content) -> Html:
    return tag("details", tag("summary", summary), *content)


def choice(sides: Sequence[tuple[str, Html]]) -> Html:
    """Panels of which one is shown at a time; all of them on paper and where no script runs."""
    if len(sides) == 1:
        return sides[0][1]
    buttons = [
        tag("button", name, type="button", aria_pressed="true" if not number else "false")
        for number, (name, _) in enumerate(sides)
    ]
    panels = [tag("div", panel, class_="panel", data_side=name) for name, panel in sides]
    return tag(
        "div", tag("p", buttons, class_="sides", role="group", aria_label="side"), panels, class_="choice"
    )


def levels_of_share(most: float, count: int = 8) -> Callable[[Floats], npt.NDArray[np.int64]]:
    """Level 0 for nothing, then equal steps up to `most`."""
    return lambda values: np.clip(np.ceil(values / (most or 1.0) * (count - 1)), 0, count - 1).astype(
        np.int64
    )


EVEN_EDGES = np.array([0.6, 0.8, 0.95, 1.05, 1.2, 1.5, 2.0])


def levels_of_even(values: Floats) -> npt.NDArray[np.int64]:
    """Level 3 is even, below are idle, above are busy ones."""
    return np.searchsorted(EVEN_EDGES, values, side="right")
