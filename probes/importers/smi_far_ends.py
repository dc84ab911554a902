"""What the far ends of NVLinks show (`nvidia-smi nvlink -R`): a switch that GPUs share, or each other.

The text names the PCI address of each far end and none of the GPUs' own. Where GPUs are cabled to each other
the addresses are theirs, and no GPU shows its own; where they are behind switches all show the same ones.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from probes.machine.nvlink_domains import Domains, components, domains_from_links

UNREADABLE = "fffffff"  # how an address begins that the driver does not tell
_MOST_LINKS = 36  # of any GPU: a far end's link of a higher number is a switch's port
FarEnds = Mapping[int, Mapping[int, tuple[str, int]]]  # GPU -> link -> address and the link's number there


def domains_of_far_ends(far: FarEnds, links: Sequence[int | None]) -> Domains | None:
    """The domains of GPUs 0 to len(links) - 1, in that order; None where the far ends fit no machine.

    `links` are the links of each GPU; None where the text does not list all.
    """
    gpus = range(len(links))
    seen = [Counter(address for address, _ in far.get(gpu, {}).values()) for gpu in gpus]
    if not all(seen):
        return None
    if _are_switches(far, seen):
        most = max((count for count in links if count), default=0)
        counts = [count or most or sum(one.values()) for count, one in zip(links, seen, strict=True)]
        switches = [frozenset(name for name in one if not name.startswith(UNREADABLE)) for one in seen]
        readable = [
            ids if len(ids) == len(one) else frozenset() for ids, one in zip(switches, seen, strict=True)
        ]
        return domains_from_links({}, counts, readable)
    return _cabled(seen)


def _are_switches(far: FarEnds, seen: Sequence[Counter[str]]) -> bool:
    """GPUs that are cabled to each other never show the same addresses: each lacks its own.

    A GPU whose list is cut shows some of those that the others do.
    """
    ports = [port for links in far.values() for _, port in links.values()]
    if max(ports) >= _MOST_LINKS or any(address.startswith(UNREADABLE) for one in seen for address in one):
        return True
    sets = [frozenset(one) for one in seen]
    pairs = [(a, b) for a, b in combinations(range(len(sets)), 2) if sets[a] & sets[b]]
    for group in components(len(sets), pairs):
        most = max((sets[gpu] for gpu in group), key=len)
        alike = sum(sets[gpu] == most for gpu in group)
        if alike < 2 or not all(sets[gpu] <= most for gpu in group):
            return False
    return True


def _cabled(seen: Sequence[Counter[str]]) -> Domains | None:
    """Addresses in rising order are the GPUs in order, as the driver counts them."""
    order = sorted({address for one in seen for address in one})
    if len(order) != len(seen):
        return None
    direct: dict[tuple[int, int], int] = {}
    for gpu, one in enumerate(seen):
        for address, count in one.items():
            peer = order.index(address)
            pair = min(gpu, peer), max(gpu, peer)
            if peer == gpu or direct.setdefault(pair, count) != count or seen[peer][order[gpu]] != count:
                return None
    return domains_from_links(direct, [0] * len(seen), [frozenset()] * len(seen))
