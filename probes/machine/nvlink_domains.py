"""Which GPUs form an NVLink domain, and through what: pure rules over link counts, shared by every source that knows links.

A label like 'NV12' does not say whether a switch or a direct cable joins two GPUs. Arithmetic does: no GPU has more than MOST_LINKS links, so a GPU whose
labels add up to more must be behind a switch, where the same links count towards every peer.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

MOST_LINKS = 18  # of one GPU, to NVLink 5; a GPU model known to have more hands its own number over
SWITCH_LABELS = frozenset(
    {6, 8, 12, 18, 36}
)  # all the links of some GPU model: what a switch shows for every pair
_LABEL = re.compile(r"NV([0-9]{1,2})")


@dataclass(frozen=True)
class Domains:
    """The domains of one host, each ascending, ordered by first GPU; every GPU is in one, alone if need be.

    `kind` is none, switch, mesh, bridge, or None where the source cannot tell; `links` are the active links of each GPU (None: not known). `ambiguous` is
    what the GPU model would settle.
    """

    kind: str | None
    domains: tuple[tuple[int, ...], ...]
    links: tuple[int | None, ...]
    unknown: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()


def links_of(label: str | None) -> int:
    """NVLinks of a path label: 18 of 'NV18', 0 of 'PIX' or None."""
    match = _LABEL.fullmatch(label or "")
    return int(match[1]) if match else 0


def components(count: int, pairs: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """Groups of `count` members that the pairs connect, each ascending, ordered by first member."""
    leader = list(range(count))
    for pair in pairs:
        low, high = sorted(leader[member] for member in pair)
        if low != high:
            leader = [low if one == high else one for one in leader]
    return tuple(
        tuple(member for member in range(count) if leader[member] == first) for first in sorted(set(leader))
    )


def domains_from_paths(
    count: int, paths: Mapping[tuple[int, int], str], links_per_gpu: int | None = None
) -> Domains:
    """The domains that the labels between `count` GPUs show (keys (i, j), i < j). `links_per_gpu` where the GPU model is known.

    A missing pair is not the same as a pair without NVLink: what depends on one is said to be unknown.
    """
    linked = {pair: links_of(label) for pair, label in paths.items() if links_of(label)}
    missing = [pair for pair in combinations(range(count), 2) if pair not in paths]
    groups = components(count, list(linked))
    parts = {group: _part_kind(group, linked, links_per_gpu) for group in groups if len(group) > 1}
    if len(parts) > 1 and max(map(len, parts)) == 2:  # a switch would join the pairs to each other
        parts = dict.fromkeys(parts, "bridge")
    kinds = set(parts.values())
    ambiguous = tuple(
        _ambiguous(group, linked) for group, kind in parts.items() if kind is None and not links_per_gpu
    )
    unknown: list[str] = []
    if len(kinds - {None}) > 1:
        unknown.append(
            f"the GPUs are joined in several ways ({', '.join(sorted(str(kind) for kind in kinds))}); which holds for all is not known"
        )
    kind = next(iter(kinds)) if len(kinds) == 1 else None if kinds or missing else "none"
    if missing and not (
        kind == "switch" and len(groups) == 1
    ):  # behind one switch every pair is the same, so nothing is missing
        unknown.append(f"the link of GPUs {_some(missing)} is not given")
        kind = kind if kind == "switch" else None
    links: tuple[int | None, ...] = (None,)  # a matrix of one GPU says nothing of its links
    if count > 1:
        group_of = {gpu: group for group in groups for gpu in group}
        links = tuple(
            _links(gpu, group_of[gpu], parts.get(group_of[gpu]), linked, missing) for gpu in range(count)
        )
    return Domains(
        kind,
        groups,
        links,
        tuple(unknown),
        (*_lost_pairs(parts, paths), *lost_links(groups, links)),
        ambiguous,
    )


def domains_from_links(
    direct: Mapping[tuple[int, int], int], to_switch: Sequence[int], switches: Sequence[frozenset[str]]
) -> Domains:
    """The domains that counted links show, where each link's far end was read.

    `direct[i, j]` (i < j) are links straight to another GPU; `to_switch[i]` links of GPU i to switches; `switches[i]` the ids of those switches, empty
    where they cannot be read (virtual machines). GPUs behind unreadable switches share one domain; disjoint sets of switches are islands.
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
    links = tuple(
        to_switch[gpu] + sum(n for pair, n in direct.items() if gpu in pair) for gpu in range(count)
    )
    unknown: tuple[str, ...] = ()
    kind: str | None = "none"
    if behind and cables:
        kind, unknown = (
            None,
            (
                "some NVLinks lead to switches and some straight to other GPUs; this mixture is not one we can plan for",
            ),
        )
    elif behind:
        kind = "switch"
    elif cables:
        kind = "bridge" if max(map(len, groups)) == 2 else "mesh"
    return Domains(kind, groups, links, unknown, lost_links(groups, links))


def lost_links(groups: Sequence[tuple[int, ...]], links: Sequence[int | None]) -> tuple[str, ...]:
    """A sentence for each GPU with fewer links than the others: degraded hardware, not another kind of machine. Pairs say nothing: a third GPU may be bare."""
    largest = max(groups, key=len, default=())
    if len(largest) < 3:
        return ()
    most = max((links[gpu] or 0 for gpu in largest), default=0)
    lost = sorted(lost_gpus(groups, links))
    told = [
        f"GPU {gpu} has no active NVLink while {len(largest)} others have up to {most}: a fault, not a machine without NVLink"
        for gpu in lost
    ]
    less = [gpu for gpu in largest if (links[gpu] or most) < most] if _alike(largest, links) else []
    return tuple(
        told + [f"GPU {gpu} has {links[gpu]} active NVLinks where others have {most}" for gpu in less]
    )


def lost_gpus(groups: Sequence[tuple[int, ...]], links: Sequence[int | None]) -> frozenset[int]:
    """The GPUs that `lost_links` says have none."""
    return frozenset(
        group[0]
        for group in groups
        if len(group) == 1 and links[group[0]] == 0 and max(map(len, groups)) >= 3
    )


def fabric_key(uuid: bytes, clique: int, state: int, status: int) -> tuple[str | None, str | None]:
    """('UUID.CLIQUE', None) of a ready NVLink fabric that may span hosts, else (None, why not).

    state: 0 not supported, 1 not started, 2 in progress, 3 completed. Only completed, without error and with a UUID that is not zero joins hosts: single
    hosts report completed with a zero UUID, and a clique id alone is not unique.
    """
    state &= 0xFF  # an unsigned char that some bindings read with its padding
    if state == 0:
        return None, None
    if state in {1, 2}:
        word = "has not started" if state == 1 else "is still in progress"
        return (
            None,
            f"the NVLink fabric is not ready (registration {word}); which hosts share it is not known yet",
        )
    if state != 3 or status != 0:
        return (
            None,
            f"the NVLink fabric reports state {state}, status {status}; which hosts share it is not known",
        )
    if not any(uuid):
        return None, None
    text = uuid.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}.{clique}", None


def fabric_faults(health: int) -> tuple[str, ...]:
    """What NVML's fabric health mask complains of, a sentence each. Fields of two bits: 0 not supported, 1 true, 2 false; counting ones would mislead."""
    fields = (
        "NVLink bandwidth is degraded",
        "an NVLink route is being recovered",
        "an NVLink route is unhealthy",
        "NVLink accesses time out",
    )
    told = [sentence for place, sentence in enumerate(fields) if health >> 2 * place & 3 == 1]
    wrong = health >> 8 & 15
    reasons = (
        "",
        "",
        "wrong system GUID",
        "wrong chassis serial number",
        "no partition",
        "too few NVLinks",
        "incompatible firmware",
        "invalid location",
    )
    if wrong > 1:
        told.append(
            f"the NVLink fabric is configured wrongly ({reasons[wrong] if wrong < len(reasons) else f'reason {wrong}'})"
        )
    return tuple(told)


def _part_kind(
    group: tuple[int, ...], linked: Mapping[tuple[int, int], int], links_per_gpu: int | None
) -> str | None:
    labels = [links for pair, links in linked.items() if pair[0] in group]
    total = max(sum(links for pair, links in linked.items() if gpu in pair) for gpu in group)
    if total > (links_per_gpu or MOST_LINKS):
        return "switch"
    if len(group) == 2:  # all the links of a GPU to one peer: a bridge, or two of a switched machine's GPUs
        return None if labels[0] in SWITCH_LABELS and labels[0] == (links_per_gpu or labels[0]) else "bridge"
    if (
        len(set(labels)) > 1
        or len(labels) < len(group) * (len(group) - 1) // 2
        or labels[0] not in SWITCH_LABELS
    ):
        return "mesh"
    if links_per_gpu:
        return "switch" if labels[0] == links_per_gpu else "mesh"
    return "mesh" if total == MOST_LINKS else None


def _ambiguous(group: tuple[int, ...], linked: Mapping[tuple[int, int], int]) -> str:
    label = max(links for pair, links in linked.items() if pair[0] in group)
    members = ", ".join(map(str, group))
    return f"GPUs {members} show NV{label}: a direct connection and a switch look the same here; name the GPU model to tell them apart"


def _links(
    gpu: int,
    group: tuple[int, ...],
    kind: str | None,
    linked: Mapping[tuple[int, int], int],
    missing: Sequence[tuple[int, int]],
) -> int | None:
    own = [links for pair, links in linked.items() if gpu in pair]
    if kind == "switch" or len(group) == 2:
        return max(own)
    return None if any(gpu in pair for pair in missing) or (own and kind is None) else sum(own)


def _lost_pairs(
    parts: Mapping[tuple[int, ...], str | None], paths: Mapping[tuple[int, int], str]
) -> tuple[str, ...]:
    lost = [
        (a, b)
        for group, kind in parts.items()
        if kind == "switch"
        for a, b in combinations(group, 2)
        if (a, b) in paths and not links_of(paths[a, b])
    ]
    return (
        (f"GPUs {_some(lost)} are behind the same NVLink switch but show no NVLink between them",)
        if lost
        else ()
    )


def _alike(group: tuple[int, ...], links: Sequence[int | None]) -> bool:
    """Most GPUs of a machine have the same number of links; a mesh of unlike ones (V100 in a cube) has no odd one out."""
    counts = [links[gpu] for gpu in group]
    return max(counts.count(one) for one in counts) > len(group) / 2


def _some(pairs: Sequence[tuple[int, int]]) -> str:
    shown = ", ".join(f"{a}-{b}" for a, b in pairs[:6])
    return shown + (f" and {len(pairs) - 6} more" if len(pairs) > 6 else "")
