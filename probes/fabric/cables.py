"""What the cables of a fabric carry and where some are missing. Pure; tiers are given, leaves first."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from probes.base.facts import FabricFacts
from probes.fabric.naming import natural

_MESH = 0.75  # of the pairs between two tiers must be cabled for a pair without a cable to be worth a word


@dataclass(frozen=True)
class Missing:
    """Two switches with fewer cables than is usual between their tiers; `lower` is nearer the hosts."""

    lower: str
    upper: str
    found: int
    usual: int


def oversubscription(facts: FabricFacts, leaves: Sequence[str]) -> tuple[dict[str, float], list[str]]:
    """Host side / root side of every leaf whose cables all have a rate, and sentences on the others."""
    down: dict[str, list[float | None]] = defaultdict(list)
    for port in facts.ports:
        down[port.leaf].append(port.rate_bytes_per_s)
    up: dict[str, list[float | None]] = defaultdict(list)
    for pair, cables in facts.uplinks.items():
        up[pair[0]].append(facts.uplink_bytes_per_s.get(pair) if cables else None)
    ratios: dict[str, float] = {}
    for leaf in leaves:
        below, above = ([rate for rate in rates if rate] for rates in (down[leaf], up[leaf]))
        if above and len(below) == len(down[leaf]) and len(above) == len(up[leaf]):
            ratios[leaf] = sum(below) / sum(above)
    without = [leaf for leaf in leaves if leaf not in ratios]
    if len(leaves) == 1:
        return ratios, []
    bare = [leaf for leaf in without if not up[leaf]]
    unknown = []
    if bare:
        unknown.append(f"{len(bare)} of {len(leaves)} leaves have no cable up: {', '.join(bare[:10])}")
    if len(without) > len(bare):
        unknown.append(
            f"the oversubscription of {len(without) - len(bare)} of {len(leaves)} leaves is not told: "
            "rates or numbers of their cables are not"
        )
    return ratios, unknown


def missing_cables(
    facts: FabricFacts, tiers: Sequence[Sequence[str]]
) -> tuple[tuple[Missing, ...], tuple[tuple[str, str], ...]]:
    """Pairs with fewer cables than is usual between their tiers, and those without one in a near mesh."""
    level = {switch: number for number, tier in enumerate(tiers) for switch in tier}
    between: dict[tuple[int, int], dict[tuple[str, str], int]] = defaultdict(dict)
    for (low, high), cables in facts.uplinks.items():
        if cables and low in level and high in level:
            between[level[low], level[high]][low, high] = cables
    missing: list[Missing] = []
    uncabled: list[tuple[str, str]] = []
    for (low_tier, high_tier), pairs in sorted(between.items()):
        usual = usual_count(pairs.values()) or 0
        missing += [Missing(low, high, found, usual) for (low, high), found in pairs.items() if found < usual]
        possible = len(tiers[low_tier]) * len(tiers[high_tier])
        if low_tier < high_tier and len(pairs) >= _MESH * possible:
            mesh = itertools.product(tiers[low_tier], tiers[high_tier])
            uncabled += [pair for pair in mesh if pair not in pairs]
    missing.sort(key=lambda pair: (natural(pair.lower), natural(pair.upper)))
    return tuple(missing), tuple(uncabled)


def unreachable_hosts(facts: FabricFacts) -> tuple[str, ...]:
    """Hosts outside the largest part (the first by name where two are as large), over any NIC."""
    parts = _joined_hosts(facts)
    largest = max(range(len(parts)), key=lambda index: (len(parts[index]), -index), default=None)
    outside = (host for index, part in enumerate(parts) if index != largest for host in part)
    return tuple(sorted(outside, key=natural))


def _joined_hosts(facts: FabricFacts) -> list[list[str]]:
    """Hosts that cables join, part by part, by the first host of each."""
    beside: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    links = [(("host", port.host), ("switch", port.leaf)) for port in facts.ports]
    links += [(("switch", low), ("switch", high)) for low, high in facts.uplinks]
    for one, other in links:
        beside[one].append(other)
        beside[other].append(one)
    parts: list[list[str]] = []
    seen: set[tuple[str, str]] = set()
    for start in sorted({port.host for port in facts.ports}, key=natural):
        if ("host", start) in seen:
            continue
        part = [("host", start)]
        seen.add(part[0])
        for place in part:  # grows as it goes
            fresh = [other for other in dict.fromkeys(beside[place]) if other not in seen]
            seen.update(fresh)
            part += fresh
        parts.append([name for what, name in part if what == "host"])
    return parts


def usual_count(counts: Iterable[int]) -> int | None:
    """The most frequent; of equals the largest."""
    found = Counter(counts)
    return max(found, key=lambda count: (found[count], count), default=None)
