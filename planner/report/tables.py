"""Tables for a terminal: words are set left, figures right, the title left."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rich.box import HORIZONTALS
from rich.table import Table

FOLDED = {"overflow": "fold"}  # long words go on in the next line of their cell: no name is ever cut


def table_of(
    names: Iterable[str],
    rows: Iterable[Sequence[str]],
    *,
    words: Collection[str] = (),
    columns: Mapping[str, Any] | None = None,
    **looks: Any,
) -> Table:
    """Columns in `words` are words, all others figures.

    `looks` are rich's for the table, `columns` those for each column. No lines are drawn but between rows
    that take several: they would take a fifth of 80 columns.
    """
    boxed = {"box": HORIZONTALS} if looks.get("show_lines") else {"box": None, "pad_edge": False}
    table = Table(**{"title_justify": "left", "padding": (0, 2, 0, 0), **boxed, **looks})
    for name in names:
        table.add_column(name, justify="left" if name in words else "right", **{**FOLDED, **(columns or {})})
    for row in rows:
        table.add_row(*row)
    return table
