"""The machines that ship with moeplan, as a table and as plain data."""

from typing import TYPE_CHECKING, NamedTuple

from planner.base import human_bandwidth
from planner.topology import Node, Topology, read_topology

if TYPE_CHECKING:
    from rich.table import Table

NAMES = "Rates per GPU and direction. NAME:4 is four nodes, NAME:4x2 two GPUs of each of four nodes."


class PresetRow(NamedTuple):
    """One shipped machine at its natural size. Rates in bytes/s per direction and GPU."""

    name: str
    nodes: int
    gpus: int
    gpu: str
    nvlink: str  # kind, and GPUs of its largest domain
    nvlink_bytes_per_s: float
    network_bytes_per_s: float
    source: str


def preset_rows(names: list[str]) -> list[PresetRow]:
    return [_preset_row(read_topology(name)) for name in names]


def preset_table(rows: list[PresetRow]) -> "Table":
    from planner.report.tables import FOLDED, table_of

    names = ("name", "nodes", "GPUs", "GPU", "NVLink domain", "NVLink", "network")
    words = ("name", "GPU", "NVLink domain")
    return table_of(names, map(_preset_cells, rows), words=words, columns=FOLDED, caption=NAMES)


def _preset_cells(row: PresetRow) -> tuple[str, ...]:
    return (
        row.name,
        str(row.nodes),
        str(row.gpus),
        row.gpu,
        row.nvlink,
        human_bandwidth(row.nvlink_bytes_per_s) if row.nvlink_bytes_per_s else "-",
        human_bandwidth(row.network_bytes_per_s),
    )


def _preset_row(topology: Topology) -> PresetRow:
    node = topology.nodes[0]
    domain = int((topology.domain_G == topology.domain_G[0]).sum())
    return PresetRow(
        name=topology.name,
        nodes=topology.node_count,
        gpus=topology.gpu_count,
        gpu=node.gpus[0].name,
        nvlink=f"{node.nvlink.kind} of {domain}" if domain > 1 else "none",
        nvlink_bytes_per_s=_nvlink_rate(node),
        network_bytes_per_s=_network_rate(node),
        source=topology.source,
    )


def _nvlink_rate(node: Node) -> float:
    """What the first GPU can send over NVLink."""
    islands = [
        rate.bytes_per_s
        for island in node.nvlink.islands
        for gpu, rate in zip(island.gpus, island.rates, strict=True)
        if gpu == 0
    ]
    return sum(islands) + sum(link.rate.bytes_per_s for link in node.nvlink.pairs if 0 in link.gpus)


def _network_rate(node: Node) -> float:
    """The first GPU's part of its NICs."""
    return sum(nic.rate.bytes_per_s / len(nic.gpus) for nic in node.nics if 0 in nic.gpus)
