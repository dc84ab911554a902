"""`nvidia-smi topo -m`: what NVLink joins, how far NICs are, and NUMA nodes, from pastes in any state.

The matrix is symmetric: a cell whose row is missing or cut is taken from its column, and where two halves
differ the lower one counts. A row whose own column does not hold X has lost a cell and is not used. The text
names neither GPU models nor the rates of NICs.
"""

from collections import Counter
from dataclasses import replace

from planner.base import BadInput
from planner.topology import LARGEST_NODE_GPUS, LARGEST_NODE_NICS
from probes.base.facts import GpuFact, HostFacts, NicFact, Notes, noted
from probes.importers.amd_smi import tool_of
from probes.importers.product_words import product_in
from probes.importers.topo_cells import Cells, cells_of
from probes.importers.topo_columns import Columns, columns_of
from probes.importers.topo_line import Table
from probes.importers.topo_numa import numa_nodes
from probes.importers.topo_text import Paste, listed, looks_like_topo, read_paste
from probes.machine.nvlink_labels import domains_from_paths

KIND = "topo-m"
OF_ONE_HOST = True


def recognise(content: bytes, name: str) -> bool:
    return looks_like_topo(content) and tool_of(content) is None  # rocm-smi's tables look alike


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """The host of the first matrix.

    BadInput where there is none, or a cell holds a word that is not a link.
    """
    paste = read_paste(content)
    table = _first_matrix(paste, name)
    columns = columns_of(table)
    if columns.gpus > LARGEST_NODE_GPUS or len(columns.nics) > LARGEST_NODE_NICS:
        matrix = f"a matrix of {columns.gpus} GPUs and {len(columns.nics)} NICs"
        most = f"a host has at most {LARGEST_NODE_GPUS} and {LARGEST_NODE_NICS}"
        raise BadInput(f"{name}: line {table.line}: {matrix}; {most}: the text is damaged")
    notes = Notes(list(columns.unknown), list(columns.warnings))
    cells = cells_of(table, columns, name, notes)
    _note_other_tables(paste, table, notes)
    return (_host(name, table, columns, cells, paste, notes),)


def _first_matrix(paste: Paste, name: str) -> Table:
    matrix = next((table for table in paste.tables if not table.is_p2p), None)
    if matrix is None:
        p2p = "only a 'topo -p2p' table, which has no distances"
        what = p2p if paste.tables else "a header but no row below it"
        raise BadInput(f"{name}: holds {what}; give the whole output of 'nvidia-smi topo -m'")
    return matrix


def _host(name: str, table: Table, columns: Columns, cells: Cells, paste: Paste, notes: Notes) -> HostFacts:
    gpus, nics = columns.gpus, len(columns.nics)
    gpu_paths = {(i, j): cells[i, j] for i in range(gpus) for j in range(i + 1, gpus) if (i, j) in cells}
    nic_paths = {
        (i, j): cells[i, gpus + j] for i in range(gpus) for j in range(nics) if (i, gpus + j) in cells
    }
    bare = [gpu for gpu in range(gpus) if any((gpu, nic) not in nic_paths for nic in range(nics))]
    if bare:
        paths = f"the paths from GPU {listed(bare)} to all NICs are not in the text"
        notes.unknown.append(f"{paths}; their nearest NICs are not known")
    numa = numa_nodes(table, gpus, notes)
    _note_legend(paste, nics, notes)
    product = product_in(paste.text)
    if product:
        notes.warnings.append(f"the text names an {product}: taken as the model of all {gpus} GPUs")
    facts = HostFacts(
        name,
        KIND,
        "imported",
        gpus=tuple(GpuFact(gpu, product, numa=numa.get(gpu)) for gpu in range(gpus)),
        nics=tuple(NicFact(nic, device=paste.devices.get(nic)) for nic in columns.nics),
        nic_paths=nic_paths,
    )
    return _with_nvlink(facts, gpu_paths, paste, notes)


def _with_nvlink(
    facts: HostFacts, gpu_paths: dict[tuple[int, int], str], paste: Paste, notes: Notes
) -> HostFacts:
    """With the paths between GPUs, and what NVLink joins; neither where the matrix shows PCI paths alone."""
    shows_links = any(word.startswith("NV") for word in gpu_paths.values())
    if not shows_links and "PIX" in paste.legend and not paste.legend & {"NV#", "SOC"}:
        lost = "the legend explains no NV#: this is 'topo -mp', which shows PCI paths alone"
        notes.unknown.append(f"NVLink: {lost}; give 'nvidia-smi topo -m'")
        return noted(facts, notes.unknown, notes.warnings)
    domains = domains_from_paths(len(facts.gpus), gpu_paths)
    facts = replace(
        facts,
        gpus=tuple(replace(gpu, nvlinks=domains.links[gpu.index]) for gpu in facts.gpus),
        gpu_paths=gpu_paths,
        nvlink_kind=domains.kind,
        domains=domains.domains,
    )
    return noted(facts, (*notes.unknown, *domains.unknown), (*notes.warnings, *domains.warnings))


def _note_legend(paste: Paste, nics: int, notes: Notes) -> None:
    if paste.nics_left_out:
        found, shown = paste.nics_left_out
        more = f"{found} NICs were found and {shown} are displayed, as the text itself says"
        notes.unknown.append(f"{more}; where the others are is not known")
    if paste.cut_legend:
        device = paste.devices[paste.cut_legend]
        notes.warnings.append(f"the NIC legend stops at {paste.cut_legend}: the name '{device}' may be cut")
    if 0 < len(paste.devices) < nics:
        notes.warnings.append(f"the NIC legend names {len(paste.devices)} of {nics} NICs")


def _note_other_tables(paste: Paste, used: Table, notes: Notes) -> None:
    shape = Counter(row.cells for row in used.rows)
    for table in (one for one in paste.tables if one is not used):
        where = f"line {table.line}"
        if table.is_p2p:
            notes.warnings.append(f"{where}: a 'topo -p2p' table, not read")
        elif Counter(row.cells for row in table.rows) == shape:
            again = f"{where}: the same matrix again, not read"
            notes.warnings.append(f"{again}; if it is another host, give each host a file")
        else:
            other = f"{where}: another matrix, of another host or another moment, is not read"
            notes.unknown.append(f"{other}; give each host a file")
