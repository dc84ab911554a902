"""How many GPUs and NICs a `topo -m` table has, and what proves it.

That is its header, or the rows where the header is missing, cut or glued.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from probes.importers.topo_line import Row, Table
from probes.machine.nvlink_domains import links_of


@dataclass(frozen=True)
class Columns:
    """GPU0 to GPU<gpus - 1>, then the NICs, in the order of the columns.

    What is not proven is said in `unknown`.
    """

    gpus: int
    nics: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        return (*(f"GPU{gpu}" for gpu in range(self.gpus)), *self.nics)

    def place_of(self, name: str) -> int | None:
        return self.names.index(name) if name in self.names else None


def columns_of(table: Table) -> Columns:
    """The columns of a table with at least one row."""
    header = table.header or ()
    gpus = sum(name.startswith("GPU") for name in header)
    columns = Columns(gpus, header[gpus:])
    orderly = gpus > 0 and header == columns.names and len(set(header)) == len(header)
    if not orderly:
        cause = "the header is missing" if not header else "the header is damaged"
        return _from_rows(table.rows, f"line {table.rows[0].line}: {cause}")
    widest = max(len(row.cells) for row in table.rows)
    strangers = {row.name for row in table.rows} - set(header)
    contradicted = widest > len(header) or strangers or (len(header) == gpus and not table.header_ends)
    if (table.header_ends and not contradicted) or _rows_prove(table.rows, columns):
        return columns
    if contradicted:
        cause = f"names {len(header)} columns and the rows show others" if table.header_ends else "is cut"
        return _from_rows(table.rows, f"line {table.line}: the header {cause}", columns)
    seen = f"the header is cut; it shows {gpus} GPUs and at least {len(columns.nics)} NICs"
    return replace(columns, unknown=(f"line {table.line}: {seen}: whether there are more NICs is not known",))


def _from_rows(rows: Sequence[Row], cause: str, shown: Columns | None = None) -> Columns:
    """The columns that the rows show.

    `cause` begins the sentences; `shown` is what a cut header names, at least.
    """
    widths = [len(row.cells) for row in rows if not row.cut] or [len(row.cells) for row in rows]
    named = 1 + max((int(row.name[3:]) for row in rows if row.name.startswith("GPU")), default=-1)
    linked = [place + 1 for row in rows for place, word in enumerate(row.cells) if links_of(word)]
    least = max(named, shown.gpus if shown else 0, *linked)
    width = max(least, *widths)
    nic_rows = [row for row in rows if not row.name.startswith("GPU")]
    nics = _nic_names(nic_rows, least, width - least)
    columns = Columns(least, nics)
    count = f"{least} GPUs and {len(nics)} NICs"
    if _rows_prove(rows, columns):
        return replace(columns, warnings=(f"{cause}; the rows show {count}",))
    guess = f"taken as {count} because NVLink and row names reach no further"
    unproven = f"{cause}: the number of GPUs and NICs is not proven, {guess}; compare with 'nvidia-smi -L'"
    return replace(columns, unknown=(unproven,))


def _rows_prove(rows: Sequence[Row], columns: Columns) -> bool:
    """Whether every column has a row, in order, with X where it belongs, and no row is wider.

    Then nothing is missing on either side.
    """
    total = len(columns.names)
    shown = [row for row in rows if len(row.cells) == total]
    square = (
        tuple(row.name for row in rows) == columns.names
        and len(shown) == total
        and all(row.cells[place] == "X" for place, row in enumerate(rows))
    )
    # affinity behind the last cell: the lines are not cut on the right
    return square and all(
        row.rest[:1].isdigit() or row.rest.startswith("N/A") for row in rows if row.name.startswith("GPU")
    )


def _nic_names(rows: Sequence[Row], gpus: int, count: int) -> tuple[str, ...]:
    """Names by the column of X in each NIC's row; the others are numbered as the driver would."""
    names = {row.cells.index("X") - gpus: row.name for row in rows if "X" in row.cells}
    taken = set(names.values())
    return tuple(
        names.get(nic, f"NIC{nic}" if f"NIC{nic}" not in taken else f"NIC{nic}?") for nic in range(count)
    )
