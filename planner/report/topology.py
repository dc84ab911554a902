"""Machines as tables for a terminal, and as plain data: the presets, and the tiers of one machine."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.base import EVIDENCE_KINDS, human_bandwidth
from planner.report.drawing import draw
from planner.topology import (
    Bisection,
    Comparison,
    Node,
    Resource,
    Topology,
    bisections,
    kept_comparisons,
    read_topology,
)

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

RATES = "Line rates per direction. Oversubscribed: what the GPUs of one half could send, over the bisection."
NAMES = "Rates per GPU and direction. NAME:4 is four nodes, NAME:4x2 two GPUs of each of four nodes."


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
    return {
        "name": topology.name,
        "nodes": topology.node_count,
        "gpus": topology.gpu_count,
        "nvlink_domains": topology.domain_count,
        "digest": topology.digest(),
        "tiers": [asdict(row) for row in tiers_table(topology)],
        "measured": [_measured(one) for one in kept_comparisons(topology)],
        "topology": topology.to_dict(),
    }


def _measured(one: Comparison) -> dict[str, Any]:
    return {
        "tier": one.tier,
        "where": one.where,
        "links": one.links,
        "stated_bytes_per_s": one.stated.bytes_per_s,
        "measured_bytes_per_s": one.measured.bytes_per_s,
        "share": one.share,
    }


def topology_report(topology: Topology) -> "RenderableType":
    """Drawing, tiers, and what each tier's figures rest on."""
    from rich.console import Group
    from rich.text import Text

    from planner.report.tables import table_of

    rows = tiers_table(topology)
    if not rows:
        return Text(draw(topology))
    measured = "".join(f"Measured {one.text}: {_stated_by(one)}\n" for one in kept_comparisons(topology))
    names = ("tier", "units", "per GPU, each way", "bisection", "oversubscribed", "evidence")
    table = table_of(names, map(_tier_cells, rows), words=("tier", "evidence"))
    notes = [RATES]
    for row in rows:
        notes += [f"{row.tier}: bisection over {row.method}", *(f"  {source}" for source in row.sources)]
    return Group(Text(f"{draw(topology)}\n{measured}"), table, Text("\n".join(notes), style="dim"))


def _stated_by(one: Comparison) -> str:
    return f"stated is {one.stated.evidence.kind}, {one.stated.evidence.source}"


def _tier_cells(row: TierRow) -> tuple[str, ...]:
    return (
        f"{row.tier} ({row.where})",
        str(row.units),
        " to ".join(dict.fromkeys(map(human_bandwidth, row.per_gpu_bytes_per_s))),
        human_bandwidth(row.bisection_bytes_per_s),
        f"{row.oversubscription:.3g} x",
        ", ".join(row.evidence),
    )


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
