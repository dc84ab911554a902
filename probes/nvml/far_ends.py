"""Where the NVLinks of each GPU lead, as NVML tells it: to other GPUs, to switches, or out of sight. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from probes.base.facts import GpuFact
from probes.machine.nvlink_domains import Domains, components, domains_from_links
from probes.nvml.codes import Raw
from probes.nvml.decode import active_links, leads_to_switch, switch_id

Pair = tuple[int, int]
_ONE_SWITCH = (
    "the far ends of the NVLinks cannot be read and NVML does not say which GPUs reach each other: "
    "taken as one switch for all of them"
)


@dataclass(frozen=True)
class Ends:
    """Far ends of a GPU's active links: the GPUs of direct ones, one entry a link.

    And the links to switches, with the ids of those that can be read.
    """

    gpus: tuple[int, ...] = ()
    to_switch: int = 0
    switches: frozenset[str] = frozenset()
    hidden: int = 0  # links to what is not a switch and not a GPU of this host as we see it


def far_ends(raw: Sequence[Raw]) -> list[Ends]:
    """A GPU with MIG on has no peers, whatever its links say."""
    at = {gpu["pci"]: gpu["index"] for gpu in raw if gpu.get("pci")}
    ends = []
    for gpu in raw:
        links = [] if gpu.get("mig") else active_links(gpu)
        others = tuple(at[link["remote"]] for link in links if link.get("remote") in at)
        rest = [link for link in links if link.get("remote") not in at]
        to_switch = [link for link in rest if leads_to_switch(link)]
        ids = frozenset(one for link in to_switch if (one := switch_id(link)))
        ends.append(Ends(others, len(to_switch), ids, hidden=len(rest) - len(to_switch)))
    return ends


def direct_links(ends: Sequence[Ends], a: int, b: int) -> int:
    """Links between two GPUs. Where only one end could be read that one counts, else what both see."""
    seen = ends[a].gpus.count(b), ends[b].gpus.count(a)
    return min(seen) or max(seen)


def nvlink_paths(domains: Sequence[tuple[int, ...]], ends: Sequence[Ends]) -> dict[Pair, str]:
    """NVLinks between two GPUs: the direct ones, or what both have to the switch."""
    paths = {}
    for a, b in (pair for domain in domains for pair in combinations(domain, 2)):
        links = direct_links(ends, a, b) or min(ends[a].to_switch, ends[b].to_switch)
        if links:
            paths[a, b] = f"NV{links}"
    return paths


def domains_of(
    gpus: Sequence[GpuFact], ends: Sequence[Ends], pairs: Sequence[Raw]
) -> tuple[Domains, tuple[str, ...]]:
    """The domains of one host, and a doubt where they rest on an assumption.

    Switches that GPUs reach through other switches join them too (16 GPUs over two boards), so that NVML's
    word on which pairs reach each other, and a common fabric, join what disjoint switch ids would part.
    """
    everyone = range(len(gpus))
    direct = {(a, b): links for a, b in combinations(everyone, 2) if (links := direct_links(ends, a, b))}
    reach = components(len(gpus), [gpus_of(pair) for pair in pairs if pair.get("p2p_nvlink") == 0])
    together = {gpu: f"reach of GPU {group[0]}" for group in reach if len(group) > 1 for gpu in group}
    known = [
        end.switches | {joined for joined in (together.get(gpu), gpus[gpu].fabric) if joined}
        for gpu, end in enumerate(ends)
    ]
    unread = [gpu for gpu in everyone if ends[gpu].to_switch and not known[gpu]]
    doubts: tuple[str, ...] = ()
    if unread and any(known):  # those that cannot be told stand alone rather than join every domain
        known = [ids or frozenset({f"GPU {gpu}"}) for gpu, ids in enumerate(known)]
        where = f"where the NVLinks of {named(unread)} lead cannot be read"
        doubts = (f"{where}: taken as apart from the others",)
    elif unread:
        doubts = (_ONE_SWITCH,)
    return domains_from_links(direct, [end.to_switch for end in ends], known), doubts


def gpus_of(pair: Raw) -> Pair:
    return pair["gpus"][0], pair["gpus"][1]


def named(members: Sequence[int]) -> str:
    """'GPU 3' or 'GPUs 0, 1, 3'."""
    return f"GPU{'s' if len(members) > 1 else ''} {', '.join(map(str, members))}"
