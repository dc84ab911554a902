"""Machines as tables for a terminal, and as plain data: the presets, and the tiers of one machine."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.base import EVIDENCE_KINDS, human_bandwidth
from planner.report.drawing import draw
from planner.topology import Bisection, Node, Resource, Topology, bisections, read_topology

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

__all__ = [
    "PresetRow",
    "TierRow",
    "draw",
    "preset_rows",
    "preset_table",
    "tiers_table",
    "topology_report",
    "topology_summary",
]


@dataclass(frozen=True)
class TierRow:
    """One tier of a machine. Rates in bytes/s per direction."""

    tier: str
    where: str
    units: int
    per_gpu_bytes_per_s: tuple[float, float]  # least and most of any GPU in it; a shared NIC in equal parts
    bisection_bytes_per_s: float
    oversubscription: float
    method: str  # over which halves the bisection was taken
    evidence: tuple[str, ...]  # kinds of evidence of the tier's resources, weakest first
    sources: tuple[str, ...]


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


def tiers_table(topology: Topology) -> list[TierRow]:
    """NVLink domain, node and network, as far as the machine has them."""
    return [_tier_row(topology, cut) for cut in bisections(topology)]


def topology_summary(topology: Topology) -> dict[str, Any]:
    """The machine and its tiers as plain data."""
    counts = {
        "nodes": topology.node_count,
        "gpus": topology.gpu_count,
        "nvlink_domains": topology.domain_count,
    }
    return {
        "name": topology.name,
        **counts,
        "digest": topology.digest(),
        "tiers": [asdict(row) for row in tiers_table(topology)],
        "topology": topology.to_dict(),
    }


def topology_report(topology: Topology) -> "RenderableType":
    """Drawing, tiers, and what each tier's figures rest on."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows = tiers_table(topology)
    table = Table()
    for name in ("tier", "units", "per GPU, each way", "bisection", "oversubscribed", "evidence"):
        table.add_column(name, justify="left" if name in ("tier", "evidence") else "right")
    for row in rows:
        rate = " to ".join(dict.fromkeys(map(human_bandwidth, row.per_gpu_bytes_per_s)))
        cut = human_bandwidth(row.bisection_bytes_per_s)
        table.add_row(
            f"{row.tier} ({row.where})",
            str(row.units),
            rate,
            cut,
            f"{row.oversubscription:.3g} x",
            ", ".join(row.evidence),
        )
    notes = [
        f"{row.tier}: bisection over {row.method}\n" + "".join(f"  {source}\n" for source in row.sources)
        for row in rows
    ]
    footer = (
        "Line rates per direction. Oversubscribed: what the GPUs of one half could send, over the bisection.\n"
        + "".join(notes)
    )
    return (
        Group(Text(draw(topology) + "\n"), table, Text(footer.rstrip(), style="dim"))
        if rows
        else Text(draw(topology))
    )


def preset_rows(names: list[str]) -> list[PresetRow]:
    return [_preset_row(read_topology(name)) for name in names]


def preset_table(rows: list[PresetRow]) -> "Table":
    from rich.table import Table

    table = Table(
        caption="Rates per GPU and direction. NAME:4 is four nodes, NAME:4x2 two GPUs of each of four nodes."
    )
    for name in ("name", "nodes", "GPUs", "GPU", "NVLink domain", "NVLink", "network"):
        table.add_column(
            name,
            justify="right" if name in ("nodes", "GPUs", "NVLink", "network") else "left",
            overflow="fold",
        )
    for row in rows:
        nvlink = human_bandwidth(row.nvlink_bytes_per_s) if row.nvlink_bytes_per_s else "-"
        table.add_row(
            row.name,
            str(row.nodes),
            str(row.gpus),
            row.gpu,
            row.nvlink,
            nvlink,
            human_bandwidth(row.network_bytes_per_s),
        )
    return table


def _preset_row(topology: Topology) -> PresetRow:
    node = topology.nodes[0]
    domain = int((topology.domain_G == topology.domain_G[0]).sum())
    nvlink = f"{node.nvlink.kind} of {domain}" if domain > 1 else "none"
    name = node.gpus[0].name
    return PresetRow(
        topology.name,
        topology.node_count,
        topology.gpu_count,
        name,
        nvlink,
        _nvlink_rate(node),
        _network_rate(node),
        topology.source,
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


def _tier_row(topology: Topology, cut: Bisection) -> TierRow:
    resources = [topology.resources[index] for index in cut.resources]
    evidence = {resource.rate.evidence for resource in resources}
    kinds = tuple(kind for kind in reversed(EVIDENCE_KINDS) if any(one.kind == kind for one in evidence))
    sources = tuple(sorted(f"{one.kind}: {one.source}" for one in evidence))
    rates = _per_gpu(topology, cut.tier, resources)
    return TierRow(
        cut.tier,
        cut.where,
        cut.units,
        (min(rates), max(rates)),
        cut.bytes_per_s,
        cut.oversubscription,
        cut.method,
        kinds,
        sources,
    )


def _per_gpu(topology: Topology, tier: str, resources: list[Resource]) -> list[float]:
    """What each GPU can send into the tier, bytes/s."""
    if tier == "network":
        nics = [path[-1] for path in topology.routes.egress if path]
        return [topology.capacity_R[nic] / nics.count(nic) for nic in dict.fromkeys(nics)]
    vertices = {f"node{gpu.node}/gpu{gpu.index}" for gpu in topology.gpus}
    sent: dict[str, float] = {}
    for resource in resources:
        if resource.tail in vertices:
            sent[resource.tail] = sent.get(resource.tail, 0.0) + resource.rate.bytes_per_s
    return list(sent.values())
