"""Tables of the benchmark, for people: units from the names of the columns."""

from collections.abc import Mapping

from rich.console import Group
from rich.table import Table as RichTable

from planner.base import human_bytes, human_seconds
from planner.bench import Table
from planner.report.tables import table_of


def bench_tables(tables: Mapping[str, Table]) -> Group:
    parts: list[RichTable | str] = []
    for table in tables.values():
        parts += [_drawn(table), *(f"Note: {note}" for note in table.notes), ""]
    return Group(*parts)


def _drawn(table: Table) -> RichTable:
    first = table.rows[0] if table.rows else {}
    words = [_heading(name) for name, value in first.items() if isinstance(value, str)]
    rows = [[shown(name, row[name]) for name in first] for row in table.rows]
    return table_of(map(_heading, first), rows, words=words, title=table.title)


def _heading(name: str) -> str:
    plain = name.removesuffix("_share").removesuffix("_bytes").replace("_", " ")
    return "time" if name == "seconds" else plain


def shown(name: str, value: object) -> str:
    """
    >>> shown("gap_share", 0.00501), shown("seconds", 0.0021), shown("of_peer", 0.5)
    ('0.501%', '2.1 ms', '0.50 x')
    >>> shown("valid", True), shown("peak_bytes", None)
    ('yes', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if not isinstance(value, float | int):
        return str(value)
    if name.endswith("seconds"):
        return human_seconds(value)
    if name.endswith("_bytes"):
        return human_bytes(value)
    if name.endswith("_share"):
        return f"{value:.3%}"
    if name.startswith("of_"):
        return f"{value:.2f} x"
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}"
