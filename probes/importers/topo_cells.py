"""The cells of a `topo -m` table that can be believed, both halves of the matrix as one."""

import re

from planner.base import BadInput
from probes.base.facts import PATHS, Notes
from probes.importers.topo_columns import Columns
from probes.importers.topo_line import Row, Table
from probes.importers.topo_text import LINK_WORDS, listed
from probes.machine.nvlink_domains import links_of

_WORD = re.compile(r"[A-Za-z]{2,16}\b")
Cells = dict[tuple[int, int], str]  # row and column, GPUs before NICs


def cells_of(table: Table, columns: Columns, name: str, notes: Notes) -> Cells:
    """What the table says of each pair. BadInput where a cell holds a word that is not a link."""
    return _symmetric(_believed(table, columns, name, notes), columns, notes)


def _believed(table: Table, columns: Columns, name: str, notes: Notes) -> Cells:
    """The cells of rows that show X in their own column."""
    cells: Cells = {}
    for row in table.rows:
        place = columns.place_of(row.name)
        if place is None:
            notes.warnings.append(f"line {row.line}: the row {row.name} has no column of that name; not used")
            continue
        known = _known(row, place, columns, name, notes)
        cells |= {(place, column): word for column, word in enumerate(known)}
    return cells


def _known(row: Row, place: int, columns: Columns, name: str, notes: Notes) -> tuple[str, ...]:
    """The cells of a row that stand where they seem to. `place` is the row's own column."""
    total = len(columns.names)
    own = row.cells[place] if place < len(row.cells) else None
    others = row.cells[:place] + row.cells[place + 1 :]
    if len(row.cells) > total or own not in (None, "X") or "X" in others:
        cells = f"has {len(row.cells)} cells and no X in its own column alone"
        notes.warnings.append(f"line {row.line}: the row {row.name} {cells}; not used")
        return ()
    return row.cells if len(row.cells) == total else _short(row, own, place, name, notes)


def _short(row: Row, own: str | None, place: int, name: str, notes: Notes) -> tuple[str, ...]:
    """Of a short row all cells where the line just ends, those before X where something follows."""
    word = _WORD.match(row.rest)
    if word and not row.cut and not row.rest.startswith(("N/A", "NV")):
        raise BadInput(
            f"{name}: line {row.line}: {word[0]!r} in row {row.name} "
            f"is no link word of 'nvidia-smi topo -m'; those are {LINK_WORDS}"
        )
    if not row.rest or row.cut:
        notes.warnings.append(f"line {row.line}: the row {row.name} is cut after {len(row.cells)} cells")
        return row.cells
    used = row.cells[:place] if own else ()
    notes.warnings.append(
        f"line {row.line}: the row {row.name} has lost a cell; only its {len(used)} cells before X are used"
    )
    return used


def _symmetric(cells: Cells, columns: Columns, notes: Notes) -> Cells:
    """Both halves as one; the lower of two that differ."""
    whole: Cells = {}
    for (row, column), word in sorted(cells.items()):
        mirror = cells.get((column, row), word)
        lower = whole[row, column] = whole[column, row] = max(word, mirror, key=_distance)
        if row < column and mirror != word:
            pair = f"{columns.names[row]} and {columns.names[column]}"
            notes.warnings.append(
                f"the two cells of {pair} differ ({word} and {mirror}); the lower one, {lower}, is used"
            )
    filled = sorted({row for row, column in whole if (row, column) not in cells})
    if filled:
        names = listed(columns.names[row] for row in filled)
        notes.warnings.append(f"rows missing or cut in the text are filled from their columns: {names}")
    return whole


def _distance(word: str) -> tuple[int, int]:
    links = links_of(word)
    return (0, -links) if links else (1, PATHS.index(word) if word in PATHS else -1)
