"""Costs as rows of a table: the predicted step, its parts, its balance and its traffic."""

from collections.abc import Iterable, Sequence

from rich.table import Table

from planner.base import human_seconds
from planner.bounds import PARTS
from planner.cost import Cost
from planner.report.tables import table_of

WORDS = ("placement", "load", "engine", "rule", "transport", "bottleneck")


def table_of_costs(keys: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Rows are of cells for `keys`, then `cost_cells`. Balance is a table of its own: both fit 80 columns."""
    return table_of((*keys, "MoE step", *PARTS), rows, words=WORDS, title="Predicted step, all MoE layers")


def table_of_traffic(keys: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Rows are of cells for `keys`, then `traffic_cells`."""
    figures = ("max/mean", "cross-node", "bottleneck")
    return table_of((*keys, *figures), rows, words=WORDS, title="Balance and traffic, all MoE layers")


def cost_cells(cost: Cost) -> tuple[str, ...]:
    parts = (float(getattr(cost, f"{part}_seconds_L").sum()) for part in PARTS)
    return (human_seconds(cost.total_seconds), *map(human_seconds, parts))


def traffic_cells(cost: Cost) -> tuple[str, ...]:
    return (f"{cost.max_over_mean:.4f}", f"{cost.cross_node_share:.1%}", cost.bottleneck)
