"""Quality against time as an SVG picture: one panel an instance, both axes logarithmic, nearer to the lower left is better."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

WIDTH, HEIGHT, MARGIN = 330, 260, 56  # of a panel, in pixels
LABEL, LINE = 184, 18  # of the legend: room for a peer's name and version
LEAST_GAP = 1e-5  # drawn for a gap below it
COLOURS = ("#1b6ca8", "#c8553d", "#588157", "#7b2d8b", "#b8860b", "#444444")


def quality_chart(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows of the study `balance` ("instance", "method", "seconds", "gap_share") as the text of an SVG file."""
    panels = [(name, list(some)) for name, some in groupby(rows, key=lambda row: str(row["instance"]))]
    methods = sorted({str(row["method"]) for row in rows})
    colour = {method: COLOURS[index % len(COLOURS)] for index, method in enumerate(methods)}
    seconds = _decades([float(row["seconds"]) for row in rows])
    gaps = _decades([max(float(row["gap_share"]), LEAST_GAP) for row in rows])
    width = WIDTH * len(panels)
    drawn = "".join(
        _panel(index * WIDTH, name, some, seconds, gaps, colour) for index, (name, some) in enumerate(panels)
    )
    columns = max((width - MARGIN) // LABEL, 1)
    places = [
        (method, MARGIN + index % columns * LABEL, HEIGHT + LINE * (1 + index // columns))
        for index, method in enumerate(methods)
    ]
    legend = "".join(
        f'<circle cx="{left}" cy="{line}" r="5" fill="{colour[method]}"/><text x="{left + 10}" y="{line + 4}">{escape(method)}</text>'
        for method, left, line in places
    )
    height = HEIGHT + LINE * (1 + -(-len(methods) // columns))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="white"/>{drawn}{legend}</svg>\n'
    )


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around the values."""
    return math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)


def _panel(
    left: int,
    name: str,
    rows: Sequence[Mapping[str, Any]],
    seconds: tuple[int, int],
    gaps: tuple[int, int],
    colour: Mapping[str, str],
) -> str:
    inner_width, inner_height = WIDTH - MARGIN - 26, HEIGHT - MARGIN - 22

    def x(value: float) -> float:
        return left + MARGIN + inner_width * (math.log10(value) - seconds[0]) / (seconds[1] - seconds[0])

    def y(value: float) -> float:
        return 24 + inner_height * (1 - (math.log10(max(value, LEAST_GAP)) - gaps[0]) / (gaps[1] - gaps[0]))

    parts = [f'<text x="{left + MARGIN}" y="14" font-weight="bold">{escape(name)}</text>']
    for power in range(seconds[0], seconds[1] + 1):
        parts.append(_line(x(10.0**power), 24, x(10.0**power), 24 + inner_height))
        parts.append(
            f'<text x="{x(10.0**power):.1f}" y="{40 + inner_height}" text-anchor="middle">{_time_label(power)}</text>'
        )
    for power in range(gaps[0], gaps[1] + 1):
        parts.append(_line(left + MARGIN, y(10.0**power), left + MARGIN + inner_width, y(10.0**power)))
        parts.append(
            f'<text x="{left + MARGIN - 4}" y="{y(10.0**power) + 4:.1f}" text-anchor="end">{100 * 10.0**power:g} %</text>'
        )
    parts.append(
        f'<text x="{left + MARGIN + inner_width / 2:.1f}" y="{56 + inner_height}" text-anchor="middle">time; gap to the bound upwards</text>'
    )
    for row in rows:
        gap, spent = float(row["gap_share"]), float(row["seconds"])
        parts.append(
            f'<circle cx="{x(spent):.1f}" cy="{y(gap):.1f}" r="5" fill="{colour[str(row["method"])]}">'
            f"<title>{escape(str(row['method']))}: {spent * 1e3:.3g} ms, gap {gap:.3%}</title></circle>"
        )
    return "".join(parts)


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#dddddd"/>'


def _time_label(power: int) -> str:
    return f"{10.0 ** (power + 3):g} ms" if power < 0 else f"{10.0**power:g} s"
