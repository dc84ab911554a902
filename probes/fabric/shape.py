"""The shape of a fabric, from its cables: leaves, spines, rails, oversubscription, and what is missing.

Pure.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from probes.base.facts import FabricFacts, HostFacts, PortFact, noted
from probes.fabric.cables import Missing, missing_cables, oversubscription, unreachable_hosts, usual_count
from probes.fabric.cabling import LeavesOf, cabling_of
from probes.fabric.naming import UNNAMED, natural, port_order, some_of
from probes.fabric.tiers import tiers_of


@dataclass(frozen=True)
class FabricShape:
    """What the cables make.

    `kind` is planner.topology.nodes.Fabric's: none, leaf-spine or rail; None where it cannot be told (said in
    `unknown`). Two leaves L0 and L1, hosts with two NICs each, the first on L0 and the second on L1: kind
    rail, rails (('L0',), ('L1',)), rail_of_nic (0, 1).
    """

    kind: str | None
    tiers: tuple[tuple[str, ...], ...]  # leaves, then the switches above them, tier by tier
    hosts: tuple[str, ...]  # by name, in natural order
    hosts_by_leaf: Mapping[str, int]
    nodes_per_leaf: int | None  # the usual number
    nics_per_host: int | None  # the usual number; None where cables do not name NICs
    rail_of_nic: tuple[int, ...]  # of the n-th NIC of a host; empty where there are no rails
    rails: tuple[tuple[str, ...], ...]  # leaves of each rail
    groups: tuple[tuple[str, ...], ...]  # hosts on the same leaves
    # of each leaf, host side / root side; below 1 where it has more up than down
    oversubscription: Mapping[str, float]
    missing: tuple[Missing, ...]
    uncabled: tuple[tuple[str, str], ...]  # pairs of a nearly complete mesh that have no cable
    unreachable: tuple[str, ...]  # hosts that cannot reach the largest part of the fabric
    unknown: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def leaves(self) -> tuple[str, ...]:
        return self.tiers[0] if self.tiers else ()

    @property
    def spines(self) -> tuple[str, ...]:
        return tuple(itertools.chain.from_iterable(self.tiers[1:]))

    @property
    def worst_oversubscription(self) -> float | None:
        return max(self.oversubscription.values(), default=None)


def shape_of(facts: FabricFacts) -> FabricShape:
    """The shape. Hosts without a name count for bandwidth, not for hosts per leaf or rails."""
    tiers = tiers_of(facts)
    named = [port for port in facts.ports if not port.host.startswith(UNNAMED)]
    leaves_of: dict[str, list[str]] = defaultdict(list)
    for port in named:  # in NIC order: facts.ports is sorted so
        leaves_of[port.host].append(port.leaf)
    hosts_by_leaf = _hosts_by_leaf(named, tiers[0])
    tells_nics = any(port.nic for port in named)
    cabling = cabling_of(leaves_of, tells_nics=tells_nics, is_flat=len(tiers) == len(tiers[0]) == 1)
    ratios, ratio_unknown = oversubscription(facts, tiers[0])
    missing, uncabled = missing_cables(facts, tiers)
    return FabricShape(
        kind=cabling.kind,
        tiers=tiers,
        hosts=tuple(sorted(leaves_of, key=natural)),
        hosts_by_leaf=hosts_by_leaf,
        nodes_per_leaf=usual_count(hosts_by_leaf.values()),
        nics_per_host=usual_count(map(len, leaves_of.values())) if tells_nics else None,
        rail_of_nic=cabling.rail_of_nic,
        rails=cabling.rails,
        groups=_groups(leaves_of),
        oversubscription=ratios,
        missing=missing,
        uncabled=uncabled,
        unreachable=unreachable_hosts(facts),
        unknown=(*cabling.notes.unknown, *ratio_unknown),
        warnings=(*cabling.notes.warnings, *_odd_leaves(hosts_by_leaf), *_above(facts.ports, hosts_by_leaf)),
    )


def findings(shape: FabricShape) -> tuple[str, ...]:
    """What is wrong with the fabric, a sentence each, for a person to look at.

    Missing cables, hosts that cannot be reached, and `warnings`.
    """
    found = []
    if shape.missing:
        first = shape.missing[0]
        pairs = f"{first.lower} to {first.upper} has {first.found} of {first.usual}"
        found.append(
            f"{len(shape.missing)} pairs of switches have fewer cables than is usual between their tiers "
            f"({pairs}, ...): failed or missing cables"
        )
    if shape.uncabled:
        found.append(
            f"{len(shape.uncabled)} pairs of switches have no cable "
            f"where nearly all others of their tiers do ({' to '.join(shape.uncabled[0])}, ...)"
        )
    if shape.unreachable:
        found.append(
            f"{len(shape.unreachable)} hosts cannot reach the largest part of the fabric, "
            f"as far as the source tells: {', '.join(shape.unreachable[:10])}"
        )
    return (*found, *shape.warnings)


def name_hosts(facts: FabricFacts, hosts: Sequence[HostFacts]) -> FabricFacts:
    """The fabric with hosts and NICs named where a host reports the port's GUID.

    ibnetdiscover often shows a factory name or 'localhost'.
    """
    known = {
        nic.guid: (host.host, nic.name)
        for host in hosts
        if host.host is not None
        for nic in host.nics
        if nic.guid is not None
    }
    ports, renamed = [], 0
    for port in facts.ports:
        host, nic = known.get(port.guid, (port.host, port.nic)) if port.guid else (port.host, port.nic)
        renamed += host != port.host
        ports.append(replace(port, host=host, nic=nic))
    said = (f"{renamed} adapters were given their host's name by GUID",) if renamed else ()
    return noted(replace(facts, ports=tuple(sorted(ports, key=port_order))), warnings=said)


def _hosts_by_leaf(ports: Iterable[PortFact], leaves: Iterable[str]) -> dict[str, int]:
    found: dict[str, set[str]] = {leaf: set() for leaf in leaves}
    for port in ports:
        if port.leaf in found:
            found[port.leaf].add(port.host)
    return {leaf: len(hosts) for leaf, hosts in found.items()}


def _odd_leaves(hosts_by_leaf: Mapping[str, int]) -> list[str]:
    usual = usual_count(hosts_by_leaf.values())
    odd = [f"{leaf} {count}" for leaf, count in hosts_by_leaf.items() if count != usual]
    return [f"most leaves have {usual} hosts; others: {some_of(odd)}"] if odd else []


def _above(ports: Iterable[PortFact], leaves: Mapping[str, int]) -> list[str]:
    return [
        f"{port.host} is cabled to {port.leaf}, which is above the leaves"
        for port in ports
        if port.leaf not in leaves
    ]


def _groups(leaves_of: LeavesOf) -> tuple[tuple[str, ...], ...]:
    groups: dict[frozenset[str], list[str]] = defaultdict(list)
    for host in sorted(leaves_of, key=natural):
        groups[frozenset(leaves_of[host])].append(host)
    return tuple(tuple(group) for group in groups.values())
