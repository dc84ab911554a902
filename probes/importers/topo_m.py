"""`nvidia-smi topo -m`: which GPUs NVLink joins, how far every NIC is, and the NUMA node of each GPU, from pastes in any state.

The matrix is symmetric: a cell whose row is missing or cut is taken from its column, and where two halves differ the lower one counts. A row whose own
column does not hold X has lost a cell and is not used. The text names neither GPU models nor the rates of NICs.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from planner.base import BadInput
from planner.topology import LARGEST_NODE_GPUS, LARGEST_NODE_NICS
from probes.base.facts import PATHS, GpuFact, HostFacts, NicFact
from probes.importers._topo_columns import Columns, columns_of
from probes.importers._topo_text import LINK_WORDS, Paste, Row, Table, looks_like_topo, read_paste
from probes.machine.nvlink_domains import domains_from_paths, links_of

KIND = "topo-m"
_CPUS = re.compile(r"\d{1,4}(?:-\d{1,4})?(?:,\d{1,4}(?:-\d{1,4})?){0,256}")
_NODES = re.compile(r"\d{1,3}(?:-\d{1,3})?(?:,\d{1,3}(?:-\d{1,3})?){0,64}")
_WORD = re.compile(r"[A-Za-z]{2,16}\b")
Cells = dict[tuple[int, int], str]  # row and column, GPUs before NICs


def recognise(content: bytes, name: str) -> bool:
    return looks_like_topo(content)


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """The host of the first matrix. BadInput where there is none, or a cell holds a word that is not a link."""
    paste = read_paste(content)
    matrices = [table for table in paste.tables if not table.is_p2p]
    if not matrices:
        what = (
            "only a 'topo -p2p' table, which has no distances"
            if paste.tables
            else "a header but no row below it"
        )
        raise BadInput(f"{name}: holds {what}; give the whole output of 'nvidia-smi topo -m'")
    table = matrices[0]
    columns = columns_of(table)
    if columns.gpus > LARGEST_NODE_GPUS or len(columns.nics) > LARGEST_NODE_NICS:
        most = f"a host has at most {LARGEST_NODE_GPUS} and {LARGEST_NODE_NICS}"
        raise BadInput(
            f"{name}: line {table.line}: a matrix of {columns.gpus} GPUs and {len(columns.nics)} NICs; {most}: the text is damaged"
        )
    notes = _Notes(list(columns.unknown), list(columns.warnings))
    cells = _symmetric(_believed(table, columns, name, notes), columns, notes)
    _note_other_tables(paste, table, notes)
    return (_host(name, table, columns, cells, paste, notes),)


@dataclass
class _Notes:
    """What is found on the way."""

    unknown: list[str]
    warnings: list[str]


def _host(name: str, table: Table, columns: Columns, cells: Cells, paste: Paste, notes: _Notes) -> HostFacts:
    gpus, nics = columns.gpus, len(columns.nics)
    gpu_paths = {(i, j): cells[i, j] for i in range(gpus) for j in range(i + 1, gpus) if (i, j) in cells}
    nic_paths = {
        (i, j): cells[i, gpus + j] for i in range(gpus) for j in range(nics) if (i, gpus + j) in cells
    }
    bare = [gpu for gpu in range(gpus) if any((gpu, nic) not in nic_paths for nic in range(nics))]
    if bare:
        notes.unknown.append(
            f"the paths from GPU {_listed(bare)} to all NICs are not in the text; their nearest NICs are not known"
        )
    domains = domains_from_paths(gpus, gpu_paths)
    numa = _numa(table, gpus, notes)
    if paste.cut_legend:
        notes.warnings.append(
            f"the NIC legend stops at {paste.cut_legend}: the name '{paste.devices[paste.cut_legend]}' may be cut"
        )
    if 0 < len(paste.devices) < nics:
        notes.warnings.append(f"the NIC legend names {len(paste.devices)} of {nics} NICs")
    gpu_facts = tuple(GpuFact(gpu, numa=numa.get(gpu), nvlinks=domains.links[gpu]) for gpu in range(gpus))
    nic_facts = tuple(NicFact(nic, device=paste.devices.get(nic)) for nic in columns.nics)
    unknown = (*notes.unknown, *domains.unknown)
    warnings = (*notes.warnings, *domains.warnings)
    return HostFacts(
        name,
        KIND,
        "imported",
        None,
        gpu_facts,
        nic_facts,
        gpu_paths,
        nic_paths,
        domains.kind,
        domains.domains,
        unknown,
        warnings,
    )


def _believed(table: Table, columns: Columns, name: str, notes: _Notes) -> Cells:
    """The cells of rows that show X in their own column."""
    cells: Cells = {}
    total = columns.gpus + len(columns.nics)
    for row in table.rows:
        place = columns.place_of(row.name)
        if place is None:
            notes.warnings.append(f"line {row.line}: the row {row.name} has no column of that name; not used")
            continue
        own = row.cells[place] if place < len(row.cells) else None
        if (
            len(row.cells) > total
            or (own is not None and own != "X")
            or "X" in (row.cells[:place] + row.cells[place + 1 :])
        ):
            notes.warnings.append(
                f"line {row.line}: the row {row.name} has {len(row.cells)} cells and no X in its own column alone; not used"
            )
            continue
        known = row.cells if len(row.cells) == total else _short(row, own, place, name, notes)
        cells.update({(place, column): word for column, word in enumerate(known)})
    return cells


def _short(row: Row, own: str | None, place: int, name: str, notes: _Notes) -> tuple[str, ...]:
    """The cells of a short row that stand where they seem to: all where the line just ends, those before X where something follows."""
    word = _WORD.match(row.rest)
    if word and not row.cut and not row.rest.startswith(("N/A", "NV")):
        raise BadInput(
            f"{name}: line {row.line}: {word[0]!r} in row {row.name} is no link word of 'nvidia-smi topo -m'; those are {LINK_WORDS}"
        )
    if not row.rest or row.cut:
        notes.warnings.append(f"line {row.line}: the row {row.name} is cut after {len(row.cells)} cells")
        return row.cells
    used = row.cells[:place] if own else ()
    notes.warnings.append(
        f"line {row.line}: the row {row.name} has lost a cell; only its {len(used)} cells before X are used"
    )
    return used


def _symmetric(cells: Cells, columns: Columns, notes: _Notes) -> Cells:
    """Both halves as one; the lower of two that differ."""
    whole: Cells = {}
    for (row, column), word in sorted(cells.items()):
        mirror = cells.get((column, row), word)
        whole[row, column] = whole[column, row] = max(word, mirror, key=_distance)
        if row < column and mirror != word:
            pair = f"{columns.names[row]} and {columns.names[column]}"
            notes.warnings.append(
                f"the two cells of {pair} differ ({word} and {mirror}); the lower one, {whole[row, column]}, is used"
            )
    filled = sorted({row for row, column in whole if (row, column) not in cells})
    if filled:
        notes.warnings.append(
            f"rows missing or cut in the text are filled from their columns: {_listed([columns.names[row] for row in filled])}"
        )
    return whole


def _distance(word: str) -> tuple[int, int]:
    links = links_of(word)
    return (0, -links) if links else (1, PATHS.index(word) if word in PATHS else -1)


def _numa(table: Table, gpus: int, notes: _Notes) -> dict[int, int]:
    """NUMA node of each GPU that has one in the text."""
    numa: dict[int, int] = {}
    lists, unread = [], []
    for row in (row for row in table.rows if row.name.startswith("GPU")):
        words = row.rest.split()
        ids = words.pop() if table.gpu_numa_column and words else "N/A"
        glued = ids != "N/A" and not _NODES.fullmatch(ids)
        if len(words) < 2 or words[1] == "N/A" or (table.header is not None and not table.numa_column):
            if glued or (words and len(words) < 2 and table.numa_column and not _CPUS.fullmatch(words[0])):
                unread.append(row.name)
            continue
        if not (_CPUS.fullmatch(words[0]) or words[0] == "N/A") or not _NODES.fullmatch(words[1]) or glued:
            unread.append(row.name)
            continue
        numa[int(row.name[3:])] = int(re.split(r"[-,]", words[1])[0])
        lists += [row.name] if not words[1].isdigit() else []
        if row.cut and row.rest.endswith(words[-1]) and len(words) == 2 and ids == "N/A":
            notes.warnings.append(f"the text ends within row {row.name}: its NUMA node {words[1]} may be cut")
    silent = [f"GPU{gpu}" for gpu in range(gpus) if gpu not in numa and f"GPU{gpu}" not in unread]
    if silent and (table.numa_column or numa):
        notes.warnings.append(f"no NUMA node is given for {_listed(silent)}")
    if unread:
        notes.warnings.append(
            f"the affinity columns of {_listed(unread)} run into each other; their NUMA nodes are not used"
        )
    if lists:
        notes.warnings.append(
            f"{_listed(lists)} list several NUMA nodes; the first is used (on Grace the others are GPU memory)"
        )
    return numa


def _note_other_tables(paste: Paste, used: Table, notes: _Notes) -> None:
    shape = Counter(row.cells for row in used.rows)
    for table in (one for one in paste.tables if one is not used):
        if table.is_p2p:
            notes.warnings.append(f"line {table.line}: a 'topo -p2p' table, not read")
        elif Counter(row.cells for row in table.rows) == shape:
            notes.warnings.append(
                f"line {table.line}: the same matrix again, not read; if it is another host, give each host a file"
            )
        else:
            notes.unknown.append(
                f"line {table.line}: another matrix, of another host or another moment, is not read; give each host a file"
            )


def _listed(members: Sequence[object]) -> str:
    return ", ".join(map(str, members[:16])) + (f" and {len(members) - 16} more" if len(members) > 16 else "")
