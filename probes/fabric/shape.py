"""The shape of a fabric, from its cables: leaves, spines, rails, oversubscription, and what is missing. Pure."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from probes.base.facts import FabricFacts, HostFacts, PortFact
from probes.fabric.cables import Missing, missing_cables, oversubscription, unreachable_hosts, usual_count
from probes.fabric.naming import UNNAMED, natural

_MOST_OF = 0.9  # of the hosts must follow a pattern for it to be the fabric's; the others are named


@dataclass(frozen=True)
class FabricShape:
    """What the cables make. `kind` is planner.topology.nodes.Fabric's: none, leaf-spine or rail; None where it cannot be told (said in `unknown`).

    Two leaves L0 and L1, hosts with two NICs each, the first on L0 and the second on L1: kind rail, rails (('L0',), ('L1',)), rail_of_nic (0, 1).
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
    oversubscription: Mapping[
        str, float
    ]  # of each leaf, host side / root side; below 1 where it has more up than down
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
    tiers = _tiers(facts)
    named = [port for port in facts.ports if not port.host.startswith(UNNAMED)]
    leaves_of: dict[str, list[str]] = defaultdict(list)
    for port in named:  # in NIC order: facts.ports is sorted so
        leaves_of[port.host].append(port.leaf)
    hosts_on = _hosts_on(named, tiers[0])
    kind, rail_of_nic, rails, unknown, warnings = _pattern(leaves_of, named, tiers)
    above = [
        f"{port.host} is cabled to {port.leaf}, which is above the leaves"
        for port in facts.ports
        if port.leaf not in hosts_on
    ]
    ratios, ratio_unknown = oversubscription(facts, tiers[0])
    missing, uncabled = missing_cables(facts, tiers)
    nics = (
        usual_count(len(leaves) for leaves in leaves_of.values()) if any(port.nic for port in named) else None
    )
    usual = usual_count(hosts_on.values())
    odd = [f"{leaf} {count}" for leaf, count in hosts_on.items() if count != usual]
    if odd:
        warnings.append(
            f"most leaves have {usual} hosts; others: {', '.join(odd[:10])}{' ...' if len(odd) > 10 else ''}"
        )
    return FabricShape(
        kind,
        tiers,
        tuple(sorted(leaves_of, key=natural)),
        hosts_on,
        usual,
        nics,
        rail_of_nic,
        rails,
        _groups(leaves_of),
        ratios,
        missing,
        uncabled,
        unreachable_hosts(facts),
        unknown=(*unknown, *ratio_unknown),
        warnings=(*warnings, *above),
    )


def findings(shape: FabricShape) -> tuple[str, ...]:
    """What is wrong with the fabric, a sentence each, for a person to look at: missing cables, hosts that cannot be reached, and `warnings`."""
    found = []
    if shape.missing:
        first = shape.missing[0]
        pairs = f"{first.lower} to {first.upper} has {first.found} of {first.usual}"
        found.append(
            f"{len(shape.missing)} pairs of switches have fewer cables than is usual between their tiers ({pairs}, ...): failed or missing cables"
        )
    if shape.uncabled:
        found.append(
            f"{len(shape.uncabled)} pairs of switches have no cable where nearly all others of their tiers do ({' to '.join(shape.uncabled[0])}, ...)"
        )
    if shape.unreachable:
        names = ", ".join(shape.unreachable[:10])
        found.append(
            f"{len(shape.unreachable)} hosts cannot reach the largest part of the fabric, as far as the source tells: {names}"
        )
    return (*found, *shape.warnings)


def name_hosts(facts: FabricFacts, hosts: Sequence[HostFacts]) -> FabricFacts:
    """The fabric with hosts and NICs named where a host reports the port's GUID; ibnetdiscover often shows a factory name or 'localhost'."""
    known = {
        nic.guid: (host.host, nic.name)
        for host in hosts
        if host.host is not None
        for nic in host.nics
        if nic.guid is not None
    }
    ports = [
        replace(port, host=known[port.guid][0], nic=known[port.guid][1]) if port.guid in known else port
        for port in facts.ports
    ]
    renamed = sum(before.host != after.host for before, after in zip(facts.ports, ports, strict=True))
    said = (f"{renamed} adapters were given their host's name by GUID",) if renamed else ()
    in_order = sorted(
        ports, key=lambda port: (natural(port.host), natural(port.nic or ""), port.leaf, port.guid or "")
    )
    return replace(facts, ports=tuple(in_order), warnings=(*facts.warnings, *said))


def _tiers(facts: FabricFacts) -> tuple[tuple[str, ...], ...]:
    """Leaves first: switches with hosts that are above no other. A switch further up has the distance to its nearest leaf."""
    upper = {pair[1] for pair in facts.uplinks}
    carrying = {port.leaf for port in facts.ports}
    tier = dict.fromkeys(sorted(carrying - upper or carrying, key=natural), 0)
    reached = list(tier)
    above: dict[str, list[str]] = defaultdict(list)
    for low, high in facts.uplinks:
        above[low].append(high)
    for switch in reached:  # grows as it goes: breadth first
        for high in above[switch]:
            if high not in tier:
                tier[high] = tier[switch] + 1
                reached.append(high)
    depth = max(tier.values(), default=-1) + 1
    return tuple(
        tuple(sorted((name for name, level in tier.items() if level == wanted), key=natural))
        for wanted in range(max(depth, 1))
    )


def _hosts_on(ports: Iterable[PortFact], leaves: Iterable[str]) -> dict[str, int]:
    found: dict[str, set[str]] = {leaf: set() for leaf in leaves}
    for port in ports:
        if port.leaf in found:
            found[port.leaf].add(port.host)
    return {leaf: len(hosts) for leaf, hosts in found.items()}


def _pattern(
    leaves_of: Mapping[str, Sequence[str]], named: Sequence[PortFact], tiers: tuple[tuple[str, ...], ...]
) -> tuple[str | None, tuple[int, ...], tuple[tuple[str, ...], ...], list[str], list[str]]:
    """Kind, rail of each NIC, leaves of each rail, unknown, warnings."""
    if not leaves_of:
        return None, (), (), ["no host has a name and a leaf: the shape of the fabric is not told"], []
    tells_nics = any(port.nic for port in named)
    unknown = (
        [] if tells_nics else ["which NIC is on which leaf is not told: rails, if there are any, do not show"]
    )
    count = usual_count(len(leaves) for leaves in leaves_of.values())
    full = {host: leaves for host, leaves in leaves_of.items() if len(leaves) == count}
    odd = sorted(set(leaves_of) - set(full), key=natural)
    warnings = (
        [
            f"{len(odd)} hosts have another number of cables than the usual {count}: {', '.join(odd[:10])}{' ...' if len(odd) > 10 else ''}"
        ]
        if odd
        else []
    )
    patterns = Counter(
        tuple(leaves.index(leaf) for leaf in leaves) for leaves in full.values()
    )  # for each NIC the first NIC on the same leaf
    pattern, followers = min(patterns.items(), key=lambda entry: (-entry[1], entry[0]))
    if followers < _MOST_OF * len(full):
        return (
            None,
            (),
            (),
            [
                *unknown,
                f"hosts are cabled in {len(patterns)} ways, none of them most hosts': the shape of the fabric is not told",
            ],
            warnings,
        )
    if followers < len(full):
        others = [
            host for host, leaves in full.items() if tuple(leaves.index(leaf) for leaf in leaves) != pattern
        ]
        warnings.append(
            f"{len(others)} hosts are cabled unlike the others: {', '.join(sorted(others, key=natural)[:10])}"
        )
    if len(set(pattern)) == 1:
        flat = len(tiers[0]) == 1 and len(tiers) == 1
        return ("none" if flat else "leaf-spine"), (), (), unknown, warnings
    rail_of_nic = tuple(sorted(set(pattern)).index(first) for first in pattern)
    rails, strays = _rails(full, rail_of_nic)
    if len(strays) > (1 - _MOST_OF) * len(full):
        why = f"{len(strays)} of {len(full)} hosts have NICs on the leaf of another's other NIC ({strays[0]})"
        return None, (), (), [*unknown, f"{why}: neither rails nor one leaf a host"], warnings
    if strays:
        warnings.append(
            f"cabled to the leaf of another rail: {', '.join(strays[:10])}{' ...' if len(strays) > 10 else ''}"
        )
    return "rail", rail_of_nic, rails, unknown, warnings


def _rails(
    full: Mapping[str, Sequence[str]], rail_of_nic: Sequence[int]
) -> tuple[tuple[tuple[str, ...], ...], list[str]]:
    """Leaves of each rail: a leaf is of the rail that most NICs on it have. And the hosts with a NIC on the leaf of another rail."""
    votes: dict[str, Counter[int]] = defaultdict(Counter)
    for leaves in full.values():
        for rail, leaf in zip(rail_of_nic, leaves, strict=True):
            votes[leaf][rail] += 1
    rail_of = {leaf: min(count, key=lambda rail: (-count[rail], rail)) for leaf, count in votes.items()}
    rails = tuple(
        tuple(sorted((leaf for leaf, rail in rail_of.items() if rail == wanted), key=natural))
        for wanted in range(max(rail_of_nic) + 1)
    )
    strays = [
        host
        for host, leaves in full.items()
        if any(rail_of[leaf] != rail for rail, leaf in zip(rail_of_nic, leaves, strict=True))
    ]
    return rails, sorted(strays, key=natural)


def _groups(leaves_of: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    groups: dict[frozenset[str], list[str]] = defaultdict(list)
    for host in sorted(leaves_of, key=natural):
        groups[frozenset(leaves_of[host])].append(host)
    return tuple(tuple(group) for group in groups.values())
