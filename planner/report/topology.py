"""A machine as a drawing and a table of its tiers, and as plain data."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from planner.base import EVIDENCE_KINDS, human_bandwidth
from planner.report.drawing import draw
from planner.topology import Bisection, Comparison, Resource, Topology, bisections, kept_comparisons

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["TierRow", "draw", "tiers_table", "topology_report", "topology_summary"]

RATES = "Line rates per direction. Oversubscribed: what the GPUs of one half could send, over the bisection."


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
        "measured": [one.to_dict() for one in kept_comparisons(topology)],
        "topology": topology.to_dict(),
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
