"""The picture of quality against time."""

import xml.etree.ElementTree as ET

from planner.report.chart import quality_chart

ROWS = (
    {"instance": "A <1>", "method": "greedy", "seconds": 0.002, "gap_share": 0.005},
    {"instance": "A <1>", "method": "refine", "seconds": 0.02, "gap_share": 0.0004},
    {"instance": "B", "method": "greedy", "seconds": 0.004, "gap_share": 0.0},
)


def test_every_row_is_a_point_and_better_is_lower_left() -> None:
    """Well-formed XML, one titled circle a row, the slower one further right, the better one further down."""
    root = ET.fromstring(quality_chart(ROWS))
    points = [circle for circle in root.iter("{http://www.w3.org/2000/svg}circle") if len(circle)]
    assert len(points) == len(ROWS)
    greedy, refine = points[:2]
    assert float(greedy.get("cx", "")) < float(refine.get("cx", ""))
    assert float(greedy.get("cy", "")) < float(refine.get("cy", ""))


def test_same_rows_same_bytes() -> None:
    """Nothing in the picture depends on when it is drawn."""
    assert quality_chart(ROWS) == quality_chart(ROWS)
