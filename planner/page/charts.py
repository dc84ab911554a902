"""Drawings of figures: bars and stacked bars as SVG. Each has its figures beside it, as a table or as text.

Colours are classes, so that they follow the reader's dark or light page, and paper.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from planner.page.html import Content, Html, tag

LINE, BARS, VALUE = 34, 260, 90  # lines of a bar with its name above it; columns of the bar and of its figure


class Bar(NamedTuple):
    name: str
    value: float
    said: str
    colour: str = "plan"


def bars(title: str, found: Sequence[Bar]) -> Html:
    """One below the other, from zero."""
    most = max((one.value for one in found), default=0.0) or 1.0
    parts: list[Content] = []
    for number, one in enumerate(found):
        y, wide = number * LINE, max(BARS * max(one.value, 0.0) / most, 0.5)
        parts.append(label_at(0, y + 12, one.name))
        parts.append(tag("rect", x=0, y=y + 16, width=f"{wide:.1f}", height=13, class_=one.colour))
        parts.append(label_at(f"{wide + 5:.1f}", y + 27, one.said))
    said = "; ".join(f"{one.name} {one.said}" for one in found)
    return drawing(BARS + VALUE, LINE * len(found), f"{title}: {said}", parts)


def stacked(title: str, parts_of: Sequence[tuple[str, float, str]], whole: float | None = None) -> Html:
    """One bar of parts; the key below names each with its figure. `whole`: what is as wide as the drawing,
    where that is more than the parts come to.
    """
    whole = whole or sum(max(value, 0.0) for _, value, _ in parts_of)
    wide, parts, x = 640.0, [], 0.0
    keys = []
    for number, (name, value, said) in enumerate(parts_of):
        colour, share = f"c{number % 10}", max(value, 0.0) / (whole or 1.0)
        parts.append(tag("rect", x=f"{x:.1f}", y=0, width=f"{wide * share:.1f}", height=26, class_=colour))
        x += wide * share
        keys.append(key(colour, f"{name}: {said}"))
    frame = tag("rect", x=0, y=0, width=wide, height=26, class_="frame")
    label = f"{title}: " + "; ".join(f"{name} {said}" for name, _, said in parts_of)
    return tag("figure", drawing(int(wide), 28, label, [parts, frame]), tag("figcaption", keys))


def key(colour: str, text: str) -> Html:
    square = tag(
        "svg", tag("rect", width=14, height=14, class_=colour), viewBox="0 0 14 14", aria_hidden="true"
    )
    return tag("span", square, tag("span", text), class_="key")


def columns(title: str, values: Sequence[float], even: float, width: int = 300, height: int = 90) -> Html:
    """Thin columns side by side in one path, with a line at `even`."""
    most = max([*values, even]) or 1.0
    step = width / max(len(values), 1)
    path = "".join(
        f"M{number * step:.1f} {height}v{-height * value / most:.1f}h{max(step * 0.85, 0.3):.2f}V{height}z"
        for number, value in enumerate(values)
    )
    y = height * (1 - even / most)
    line = tag("path", d=f"M0 {y:.1f}H{width}", class_="axis", stroke_dasharray="4 3")
    return drawing(width, height, title, [tag("path", d=path, class_="plan"), line])


def drawing(width: float, height: float, label: str, content: Content, **attributes: Any) -> Html:
    """A picture with a name that says what is to be seen in it."""
    box = {"viewBox": f"0 0 {width:g} {height:g}", "width": f"{width:g}", "height": f"{height:g}"}
    return tag("svg", tag("title", label), content, role="img", aria_label=label, **box, **attributes)


def label_at(x: Any, y: Any, text: str, anchor: str | None = None, class_: str | None = None) -> Html:
    return tag("text", text, x=x, y=y, text_anchor=anchor, class_=class_)
