"""The curve over R as a table with bars, for a terminal."""

from rich.table import Table

from planner.base import human_bytes, human_seconds
from planner.cost import CurvePoint
from planner.report.tables import table_of

BAR = 8  # characters of the longest bar
# of a quick search, judged in expectation: names of their own, since a plan's figures differ
CURVE_FIGURES = (
    "R",
    "slots a GPU",
    "quick step",
    "quick held-out",
    "quick max/mean",
    "experts a GPU",
    "free a GPU",
)


def curve_table(curve: tuple[CurvePoint, ...], redundant: int) -> Table:
    """A row for each R; bars are of the fitted step, from zero."""
    longest = max(point.fitted_seconds for point in curve)
    rows = []
    for point in curve:
        bar = "█" * max(round(BAR * point.fitted_seconds / longest), 1)
        rows.append((*_figures(point), bar + (" *" if point.redundant == redundant else "")))
    title = "Redundant experts: what each R is predicted to take (bars are of the quick step; * is chosen)"
    return table_of((*CURVE_FIGURES, "beside"), rows, words=("beside",), title=title)


def _figures(point: CurvePoint) -> tuple[str, ...]:
    held_out = point.held_out_seconds
    return (
        str(point.redundant),
        str(point.slots_per_gpu),
        human_seconds(point.fitted_seconds),
        human_seconds(held_out) if held_out is not None else "-",
        f"{point.max_over_mean:.4f}",
        human_bytes(point.weights_bytes),
        human_bytes(max(point.free_bytes, 0)),
    )
