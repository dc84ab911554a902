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


def test_legend_names_every_method_apart_and_inside() -> None:
    """Eight methods with long names beside one panel: no two labels share a place, and the picture is tall
    enough for all of them.
    """
    root = ET.fromstring(
        quality_chart([{**ROWS[0], "method": f"SGLang 0.5.23 deepseek_vec {index}"} for index in range(8)])
    )
    labels = [
        text
        for text in root.iter("{http://www.w3.org/2000/svg}text")
        if (text.text or "").startswith("SGLang")
    ]
    assert len({(label.get("x"), label.get("y")) for label in labels}) == 8
    assert max(float(label.get("y", "")) for label in labels) < float(root.get("viewBox", "").split()[3])
