"""The curve over R as a table with bars, for a terminal."""

from rich.table import Table

from planner.base import human_bytes, human_seconds
from planner.cost import CurvePoint

BAR = 24  # characters of the longest bar


def curve_table(curve: tuple[CurvePoint, ...], redundant: int) -> Table:
    """A row for each R; bars are of the fitted step, from zero."""
    table = Table(
        title="Redundant experts: what each R is predicted to take (refined, expectation of the rule)",
        title_justify="left",
    )
    for name in (
        "R",
        "slots/GPU",
        "step fitted",
        "held-out",
        "max/mean",
        "experts a GPU",
        "free a GPU",
        "step fitted, from zero",
    ):
        table.add_column(name, justify="left" if name == "step fitted, from zero" else "right", no_wrap=True)
    longest = max(point.fitted_seconds for point in curve)
    for point in curve:
        bar = "█" * max(round(BAR * point.fitted_seconds / longest), 1) + (
            " chosen" if point.redundant == redundant else ""
        )
        held_out = point.held_out_seconds
        figures = (
            human_seconds(point.fitted_seconds),
            human_seconds(held_out) if held_out is not None else "-",
            f"{point.max_over_mean:.4f}",
        )
        table.add_row(
            str(point.redundant),
            str(point.slots_per_gpu),
            *figures,
            human_bytes(point.weights_bytes),
            human_bytes(max(point.free_bytes, 0)),
            bar,
        )
    return table
