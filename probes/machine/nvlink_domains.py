"""Which GPUs form an NVLink domain, and through what: pure rules over link counts.

Every source that knows links shares them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

Pair = tuple[int, int]
Group = tuple[int, ...]
_LABEL = re.compile(r"NV([0-9]{1,2})")


@dataclass(frozen=True)
class Domains:
    """The domains of one host, each ascending, ordered by first GPU; every GPU is in one, alone if need be.

    `kind` is none, switch, mesh, bridge, or None where the source cannot tell; `links` are the active links
    of each GPU (None: not known). `ambiguous` is what the GPU model would settle.
    """

    kind: str | None
    domains: tuple[Group, ...]
    links: tuple[int | None, ...]
    unknown: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()


def links_of(label: str | None) -> int:
    """NVLinks of a path label: 18 of 'NV18', 0 of 'PIX' or None."""
    match = _LABEL.fullmatch(label or "")
    return int(match[1]) if match else 0


def components(count: int, pairs: Sequence[Pair]) -> tuple[Group, ...]:
    """Groups of `count` members that the pairs connect, each ascending, ordered by first member."""
    leader = list(range(count))
    for pair in pairs:
        low, high = sorted(leader[member] for member in pair)
        if low != high:
            leader = [low if one == high else one for one in leader]
    groups = ([member for member in range(count) if leader[member] == first] for first in sorted(set(leader)))
    return tuple(map(tuple, groups))


def domains_from_links(
    direct: Mapping[Pair, int], to_switch: Sequence[int], switches: Sequence[frozenset[str]]
) -> Domains:
    """The domains that counted links show, where each link's far end was read.

    `direct[i, j]` (i < j) are links straight to another GPU; `to_switch[i]` links of GPU i to switches;
    `switches[i]` the ids of those switches, empty where they cannot be read (virtual machines). GPUs behind
    unreadable switches share one domain; disjoint sets of switches are islands.
    """
    count = len(to_switch)
    behind = [gpu for gpu in range(count) if to_switch[gpu] > 0]
    joined = [
        (a, b)
        for a, b in combinations(behind, 2)
        if not switches[a] or not switches[b] or switches[a] & switches[b]
    ]
    cables = [pair for pair, links in direct.items() if links > 0]
    groups = components(count, joined + cables)
    straight = [sum(links for pair, links in direct.items() if gpu in pair) for gpu in range(count)]
    links = tuple(map(sum, zip(to_switch, straight, strict=True)))
    unknown: tuple[str, ...] = ()
    kind: str | None = "switch" if behind else "none"
    if behind and cables:
        mixed = "some NVLinks lead to switches and some straight to other GPUs"
        kind, unknown = None, (f"{mixed}; this mixture is not one we can plan for",)
    elif cables:
        kind = "bridge" if max(map(len, groups)) == 2 else "mesh"
    return Domains(kind, groups, links, unknown, lost_links(groups, links))


def lost_links(groups: Sequence[Group], links: Sequence[int | None]) -> tuple[str, ...]:
    """A sentence for each GPU with fewer links than the others.

    That is degraded hardware, not another kind of machine. Pairs say nothing: a third GPU may be bare.
    """
    largest = max(groups, key=len, default=())
    if len(largest) < 3:
        return ()
    most = max((links[gpu] or 0 for gpu in largest), default=0)
    others = f"while {len(largest)} others have up to {most}: a fault, not a machine without NVLink"
    told = [f"GPU {gpu} has no active NVLink {others}" for gpu in sorted(lost_gpus(groups, links))]
    less = [gpu for gpu in largest if (links[gpu] or most) < most] if _alike(largest, links) else []
    told += [f"GPU {gpu} has {links[gpu]} active NVLinks where others have {most}" for gpu in less]
    return tuple(told)


def lost_gpus(groups: Sequence[Group], links: Sequence[int | None]) -> frozenset[int]:
    """The GPUs that `lost_links` says have none."""
    if max(map(len, groups), default=0) < 3:
        return frozenset()
    return frozenset(group[0] for group in groups if len(group) == 1 and links[group[0]] == 0)


def _alike(group: Group, links: Sequence[int | None]) -> bool:
    """Most GPUs of a machine have the same number of links.

    A mesh of unlike ones (V100 in a cube) has no odd one out.
    """
    counts = [links[gpu] for gpu in group]
    return max(counts.count(one) for one in counts) > len(group) / 2
