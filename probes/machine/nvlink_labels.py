"""Which GPUs form an NVLink domain by the labels of their paths, like 'NV12'. Pure.

A label does not say whether a switch or a direct cable joins two GPUs. Arithmetic does: no GPU has more than
MOST_LINKS links, so a GPU whose labels add up to more must be behind a switch, where the same links count
towards every peer.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

from probes.machine.nvlink_domains import Domains, Group, Pair, components, links_of, lost_links

MOST_LINKS = 18  # of one GPU, to NVLink 5; a GPU model known to have more hands its own number over
# all the links of some GPU model: what a switch shows for every pair
SWITCH_LABELS = frozenset({6, 8, 12, 18, 36})

Linked = Mapping[Pair, int]  # NVLinks of each pair that shows any


def domains_from_paths(count: int, paths: Mapping[Pair, str], links_per_gpu: int | None = None) -> Domains:
    """The domains that the labels between `count` GPUs show (keys (i, j), i < j).

    `links_per_gpu` where the GPU model is known. A missing pair is not the same as a pair without NVLink:
    what depends on one is said to be unknown.
    """
    linked = {pair: links_of(label) for pair, label in paths.items() if links_of(label)}
    missing = [pair for pair in combinations(range(count), 2) if pair not in paths]
    groups = components(count, list(linked))
    parts = _kinds_of_parts(groups, linked, links_per_gpu)
    kind, unknown = _kind(parts, groups, missing)
    links: tuple[int | None, ...] = (None,)  # a matrix of one GPU says nothing of its links
    if count > 1:
        group_of = {gpu: group for group in groups for gpu in group}
        mine = ((gpu, group_of[gpu]) for gpu in range(count))
        links = tuple(_links(gpu, group, parts.get(group), linked, missing) for gpu, group in mine)
    unclear = [group for group, kind_of_part in parts.items() if kind_of_part is None and not links_per_gpu]
    ambiguous = tuple(_ambiguous(group, linked) for group in unclear)
    warnings = (*_lost_pairs(parts, paths), *lost_links(groups, links))
    return Domains(kind, groups, links, unknown, warnings, ambiguous)


def _kinds_of_parts(
    groups: Sequence[Group], linked: Linked, links_per_gpu: int | None
) -> dict[Group, str | None]:
    parts = {group: _part_kind(group, linked, links_per_gpu) for group in groups if len(group) > 1}
    if len(parts) > 1 and max(map(len, parts)) == 2:  # a switch would join the pairs to each other
        return dict.fromkeys(parts, "bridge")
    return parts


def _kind(
    parts: Mapping[Group, str | None], groups: Sequence[Group], missing: Sequence[Pair]
) -> tuple[str | None, tuple[str, ...]]:
    """The kind of the whole, None where it is not known, and what is not known."""
    kinds = set(parts.values())
    unknown: list[str] = []
    if len(kinds - {None}) > 1:
        several = ", ".join(sorted(str(kind) for kind in kinds))
        unknown.append(f"the GPUs are joined in several ways ({several}); which holds for all is not known")
    kind = next(iter(kinds)) if len(kinds) == 1 else None if kinds or missing else "none"
    behind_one_switch = kind == "switch" and len(groups) == 1  # every pair is the same, so nothing is missing
    if missing and not behind_one_switch:
        unknown.append(f"the link of GPUs {_some(missing)} is not given")
        kind = kind if kind == "switch" else None
    return kind, tuple(unknown)


def _part_kind(group: Group, linked: Linked, links_per_gpu: int | None) -> str | None:
    labels = [links for pair, links in linked.items() if pair[0] in group]
    total = max(sum(links for pair, links in linked.items() if gpu in pair) for gpu in group)
    first = labels[0]
    if total > (links_per_gpu or MOST_LINKS):
        return "switch"
    if len(group) == 2:  # all the links of a GPU to one peer: a bridge, or two of a switched machine's GPUs
        return None if first in SWITCH_LABELS and first == (links_per_gpu or first) else "bridge"
    uneven = len(set(labels)) > 1 or len(labels) < len(group) * (len(group) - 1) // 2
    if uneven or first not in SWITCH_LABELS:
        return "mesh"
    if links_per_gpu:
        return "switch" if first == links_per_gpu else "mesh"
    return "mesh" if total == MOST_LINKS else None


def _ambiguous(group: Group, linked: Linked) -> str:
    label = max(links for pair, links in linked.items() if pair[0] in group)
    shown = f"GPUs {', '.join(map(str, group))} show NV{label}"
    alike = "a direct connection and a switch look the same here"
    return f"{shown}: {alike}; name the GPU model to tell them apart"


def _links(gpu: int, group: Group, kind: str | None, linked: Linked, missing: Sequence[Pair]) -> int | None:
    own = [links for pair, links in linked.items() if gpu in pair]
    if kind == "switch" or len(group) == 2:
        return max(own)
    return None if any(gpu in pair for pair in missing) or (own and kind is None) else sum(own)


def _lost_pairs(parts: Mapping[Group, str | None], paths: Mapping[Pair, str]) -> tuple[str, ...]:
    switched = [group for group, kind in parts.items() if kind == "switch"]
    pairs = [pair for group in switched for pair in combinations(group, 2)]
    lost = [pair for pair in pairs if pair in paths and not links_of(paths[pair])]
    where = f"GPUs {_some(lost)} are behind the same NVLink switch"
    return (f"{where} but show no NVLink between them",) if lost else ()


def _some(pairs: Sequence[Pair]) -> str:
    shown = ", ".join(f"{a}-{b}" for a, b in pairs[:6])
    return shown + (f" and {len(pairs) - 6} more" if len(pairs) > 6 else "")
