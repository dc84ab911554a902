"""Quality against time as an SVG picture: one panel an instance, both axes logarithmic.

Nearer to the lower left is better.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

WIDTH, HEIGHT, MARGIN = 330, 260, 56  # of a panel, in pixels
TOP, INNER_WIDTH, INNER_HEIGHT = 24, WIDTH - MARGIN - 26, HEIGHT - MARGIN - 22  # of the axes
LABEL, LINE = 184, 18  # of the legend: room for a peer's name and version
LEAST_GAP = 1e-5  # drawn for a gap below it
COLOURS = ("#1b6ca8", "#c8553d", "#588157", "#7b2d8b", "#b8860b", "#444444")


def quality_chart(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows of the study `balance` ("instance", "method", "seconds", "gap_share") as the text of an SVG
    file.
    """
    panels = [(name, list(some)) for name, some in groupby(rows, key=lambda row: str(row["instance"]))]
    methods = sorted({str(row["method"]) for row in rows})
    colour = {method: COLOURS[index % len(COLOURS)] for index, method in enumerate(methods)}
    seconds = _decades([float(row["seconds"]) for row in rows])
    gaps = _decades([max(float(row["gap_share"]), LEAST_GAP) for row in rows])
    width = WIDTH * len(panels)
    drawn = "".join(
        _drawn(_Panel(index * WIDTH, seconds, gaps), name, some, colour)
        for index, (name, some) in enumerate(panels)
    )
    columns = max((width - MARGIN) // LABEL, 1)
    height = HEIGHT + LINE * (1 + -(-len(methods) // columns))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="white"/>{drawn}{_legend(colour, columns)}</svg>\n'
    )


def _legend(colour: Mapping[str, str], columns: int) -> str:
    parts = []
    for index, (method, fill) in enumerate(colour.items()):
        left, line = MARGIN + index % columns * LABEL, HEIGHT + LINE * (1 + index // columns)
        parts.append(f'<circle cx="{left}" cy="{line}" r="5" fill="{fill}"/>')
        parts.append(f'<text x="{left + 10}" y="{line + 4}">{escape(method)}</text>')
    return "".join(parts)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around the values."""
    return math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)


@dataclass(frozen=True)
class _Panel:
    """Where the values of one instance lie; `seconds` and `gaps` are the powers of ten at the ends of the
    axes.
    """

    left: int
    seconds: tuple[int, int]
    gaps: tuple[int, int]

    def x(self, seconds: float) -> float:
        first, last = self.seconds
        return self.left + MARGIN + INNER_WIDTH * (math.log10(seconds) - first) / (last - first)

    def y(self, gap: float) -> float:
        first, last = self.gaps
        return TOP + INNER_HEIGHT * (1 - (math.log10(max(gap, LEAST_GAP)) - first) / (last - first))


def _drawn(panel: _Panel, name: str, rows: Sequence[Mapping[str, Any]], colour: Mapping[str, str]) -> str:
    parts = [f'<text x="{panel.left + MARGIN}" y="14" font-weight="bold">{escape(name)}</text>', _axes(panel)]
    for row in rows:
        method, gap, spent = str(row["method"]), float(row["gap_share"]), float(row["seconds"])
        parts.append(
            f'<circle cx="{panel.x(spent):.1f}" cy="{panel.y(gap):.1f}" r="5" fill="{colour[method]}">'
            f"<title>{escape(method)}: {spent * 1e3:.3g} ms, gap {gap:.3%}</title></circle>"
        )
    return "".join(parts)


def _axes(panel: _Panel) -> str:
    left, bottom = panel.left + MARGIN, TOP + INNER_HEIGHT
    parts = []
    for power in range(panel.seconds[0], panel.seconds[1] + 1):
        x = panel.x(10.0**power)
        parts.append(_line(x, TOP, x, bottom))
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{_time_label(power)}</text>')
    for power in range(panel.gaps[0], panel.gaps[1] + 1):
        y, share = panel.y(10.0**power), f"{100 * 10.0**power:g} %"
        parts.append(_line(left, y, left + INNER_WIDTH, y))
        parts.append(f'<text x="{left - 4}" y="{y + 4:.1f}" text-anchor="end">{share}</text>')
    middle = f'x="{left + INNER_WIDTH / 2:.1f}" y="{bottom + 32}" text-anchor="middle"'
    parts.append(f"<text {middle}>time; gap to the bound upwards</text>")
    return "".join(parts)


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#dddddd"/>'


def _time_label(power: int) -> str:
    return f"{10.0 ** (power + 3):g} ms" if power < 0 else f"{10.0**power:g} s"
