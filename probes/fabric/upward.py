"""Which end of a cable between two switches is nearer the root, from where the hosts are."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

Pair = tuple[str, str]


def upward(pairs: Iterable[Pair], hosts: Mapping[str, int], warnings: list[str]) -> dict[Pair, Pair]:
    """Each pair of cabled switches as (nearer the hosts, nearer the root). `hosts`: host ports by switch."""
    pairs = list(pairs)
    neighbours: dict[str, set[str]] = defaultdict(set)
    for first, second in pairs:
        neighbours[first].add(second)
        neighbours[second].add(first)
    tier = _tiers(_leaves(neighbours, hosts, warnings), neighbours)
    level = [pair for pair in pairs if tier.get(pair[0]) == tier.get(pair[1])]
    if level:
        warnings.append(
            f"{len(level)} pairs of switches are cabled on the same tier ({', '.join(level[0])}): "
            "which is nearer the root is not told"
        )
    return {
        (first, second): (first, second) if tier.get(first, 0) <= tier.get(second, 0) else (second, first)
        for first, second in pairs
    }


def _leaves(neighbours: Mapping[str, set[str]], hosts: Mapping[str, int], warnings: list[str]) -> list[str]:
    """Switches with hosts, but for spines that have a few.

    A subnet manager on a spine does not make it a leaf: every switch it is cabled to has many more hosts.
    """
    leaves = set(hosts)
    for switch in sorted(leaves, key=lambda name: (hosts[name], name)):
        beside = [hosts[other] for other in neighbours.get(switch, ()) if other in leaves]
        if beside and 4 * hosts[switch] <= min(beside):
            leaves.remove(switch)
            warnings.append(
                f"{switch} is taken for a spine: it has {hosts[switch]} host ports "
                f"where the leaves below it have {min(beside)} and more"
            )
    return sorted(leaves)


def _tiers(leaves: Iterable[str], neighbours: Mapping[str, set[str]]) -> dict[str, int]:
    tier = dict.fromkeys(leaves, 0)
    reached = list(tier)
    for switch in reached:  # grows as it goes: breadth first
        for other in sorted(neighbours.get(switch, ())):
            if other not in tier:
                tier[other] = tier[switch] + 1
                reached.append(other)
    return tier
