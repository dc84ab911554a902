"""Costs as rows of a table: the predicted step, its parts, its balance and its traffic."""

from collections.abc import Iterable, Sequence

from rich.table import Table

from planner.base import human_seconds
from planner.bounds import PARTS
from planner.cost import Cost
from planner.report.tables import table_of

WORDS = ("placement", "load", "engine", "rule", "transport", "bottleneck")


def table_of_costs(keys: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Rows are of cells for `keys`, then `cost_cells`."""
    figures = ("total", *PARTS, "max/mean", "balancedness", "cross-node", "bottleneck")
    return table_of((*keys, *figures), rows, words=WORDS, title="Predicted step, all layers")


def cost_cells(cost: Cost) -> tuple[str, ...]:
    parts = (float(getattr(cost, f"{part}_seconds_L").sum()) for part in PARTS)
    return (
        human_seconds(cost.total_seconds),
        *map(human_seconds, parts),
        f"{cost.max_over_mean:.4f}",
        f"{1 / cost.max_over_mean:.4f}",
        f"{cost.cross_node_share:.1%}",
        cost.bottleneck,
    )
