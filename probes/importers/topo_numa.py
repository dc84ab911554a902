"""The NUMA node of each GPU, from the affinity columns of a `topo -m` table, cut or glued as they may be."""

import re
from dataclasses import dataclass, field

from probes.base.facts import Notes
from probes.importers.topo_line import Row, Table
from probes.importers.topo_text import listed

_CPUS = re.compile(r"\d{1,4}(?:-\d{1,4})?(?:,\d{1,4}(?:-\d{1,4})?){0,256}")
_NODES = re.compile(r"\d{1,3}(?:-\d{1,3})?(?:,\d{1,3}(?:-\d{1,3})?){0,64}")


@dataclass
class _Found:
    """NUMA node by GPU; rows with several nodes, and rows whose columns cannot be told apart."""

    node: dict[int, int] = field(default_factory=dict)
    lists: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def numa_nodes(table: Table, gpus: int, notes: Notes) -> dict[int, int]:
    """NUMA node of each GPU that has one in the text."""
    found = _Found()
    for row in table.rows:
        if row.name.startswith("GPU"):
            _take(found, row, table, notes)
    silent = [f"GPU{gpu}" for gpu in range(gpus) if gpu not in found.node and f"GPU{gpu}" not in found.unread]
    if silent and (table.numa_column or found.node):
        notes.warnings.append(f"no NUMA node is given for {listed(silent)}")
    if found.unread:
        glued = f"the affinity columns of {listed(found.unread)} run into each other"
        notes.warnings.append(f"{glued}; their NUMA nodes are not used")
    if found.lists:
        several = f"{listed(found.lists)} list several NUMA nodes"
        notes.warnings.append(f"{several}; the first is used (on Grace the others are GPU memory)")
    return found.node


def _take(found: _Found, row: Row, table: Table, notes: Notes) -> None:
    words = row.rest.split()
    ids = words.pop() if table.gpu_numa_column and words else "N/A"
    glued = ids != "N/A" and not _NODES.fullmatch(ids)
    if len(words) < 2 or words[1] == "N/A" or (table.header is not None and not table.numa_column):
        alone = words and len(words) < 2 and table.numa_column and not _CPUS.fullmatch(words[0])
        found.unread += [row.name] if glued or alone else []
        return
    cpus, nodes = words[:2]
    if glued or not (_CPUS.fullmatch(cpus) or cpus == "N/A") or not _NODES.fullmatch(nodes):
        found.unread.append(row.name)
        return
    found.node[int(row.name[3:])] = int(re.split(r"[-,]", nodes)[0])
    if not nodes.isdigit():
        found.lists.append(row.name)
    if row.cut and row.rest.endswith(words[-1]) and len(words) == 2 and ids == "N/A":
        notes.warnings.append(f"the text ends within row {row.name}: its NUMA node {nodes} may be cut")
