"""Which switches are leaves, and how far above them every other one is."""

from collections import defaultdict

from probes.base.facts import FabricFacts
from probes.fabric.naming import natural


def tiers_of(facts: FabricFacts) -> tuple[tuple[str, ...], ...]:
    """Leaves first: switches with hosts that are above no other.

    A switch further up has the distance to its nearest leaf.
    """
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
    depth = max(tier.values(), default=0) + 1
    return tuple(
        tuple(sorted((name for name, level in tier.items() if level == wanted), key=natural))
        for wanted in range(depth)
    )
