"""What NVML's answers say about a host: NVLink domains, paths between GPUs, and what is wrong. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from probes.base.facts import GpuFact, HostFacts
from probes.machine.nvlink_domains import Domains, components, domains_from_links, lost_links
from probes.nvml.ask import NvmlAnswers
from probes.nvml.decode import (
    ANCESTORS,
    P2P,
    VIRTUALIZATION,
    Raw,
    active_links,
    decode_fabric,
    decode_gpu,
    error_text,
    leads_to_switch,
    links_untold,
    switch_id,
)

# Refusals that many sound machines give: (question, NVML code).
EXPECTED = {
    ("mig", 3),
    ("bandwidth_mode", 3),
    ("bandwidth_mode", 13),
    ("fabric", 3),
    ("link_count", 3),
    ("virtualization", 3),
}
Pair = tuple[int, int]


def facts_of(answers: NvmlAnswers) -> HostFacts:
    """The host without its name and NICs. A GPU that is sick, lost or degraded is in, with its faults. No domains where the NVLink fabric is not ready."""
    raw, gpus = answers.gpus, [decode_gpu(gpu) for gpu in answers.gpus]
    ends = _ends(raw)
    linked, doubts = _domains(raw, gpus, ends, answers.pairs)
    unready = {
        gpu.index: why
        for gpu, one in zip(gpus, raw, strict=True)
        if "links" in one and (why := decode_fabric(one.get("fabric"), gpu.name).not_ready)
    }
    virtual = sorted(
        {VIRTUALIZATION[gpu["virtualization"]] for gpu in raw if gpu.get("virtualization") in VIRTUALIZATION}
    )
    paths = (
        {}
        if virtual
        else {
            _pair(pair): ANCESTORS[pair["ancestor"]]
            for pair in answers.pairs
            if pair.get("ancestor") in ANCESTORS
        }
    )
    unknown = [*linked.unknown, *_refused(raw)]
    hidden = [gpu for gpu, end in enumerate(ends) if end.hidden]
    if hidden:
        unknown.append(
            f"NVLinks of {named(hidden)} lead to GPUs that cannot be seen from here (a container or virtual machine with some of the GPUs?)"
        )
    if virtual:
        unknown.append(
            f"{' and '.join(virtual)}: the PCIe distances between GPUs that NVML gives there are not those of the hardware, and are left out"
        )
    if unready:
        first = unready[min(unready)]
        unknown.append(
            f"{first} ({named(sorted(unready))}): which GPUs share a domain is not known; see to the fabric manager, then probe again"
        )
    asked = [gpu for gpu in raw if "links" in gpu]
    untold = bool(unready) or (bool(asked) and all(links_untold(gpu) for gpu in asked))
    return HostFacts(
        source="NVML" + (f" (driver {answers.driver})" if answers.driver else ""),
        kind="nvml",
        evidence="read",
        gpus=tuple(_with_lost_links(gpu, one, linked) for gpu, one in zip(gpus, raw, strict=True)),
        gpu_paths=paths if untold else paths | dict(_nvlink_paths(linked.domains, ends)),
        nvlink_kind=None if untold else linked.kind,
        domains=None if untold else _by_clique(linked.domains, gpus),
        unknown=tuple(unknown),
        warnings=(*answers.warnings, *doubts, *_peer_faults(answers.pairs, raw)),
    )


@dataclass(frozen=True)
class Ends:
    """Far ends of a GPU's active links: the GPUs of direct ones, one entry a link; links to switches, and the ids of those that can be read."""

    gpus: tuple[int, ...] = ()
    to_switch: int = 0
    switches: frozenset[str] = frozenset()
    hidden: int = 0  # links to what is not a switch and not a GPU of this host as we see it


def _ends(raw: Sequence[Raw]) -> list[Ends]:
    """A GPU with MIG on has no peers, whatever its links say."""
    at = {gpu["pci"]: gpu["index"] for gpu in raw if gpu.get("pci")}
    ends = []
    for gpu in raw:
        links = [] if gpu.get("mig") else active_links(gpu)
        others = [at[link["remote"]] for link in links if link.get("remote") in at]
        rest = [link for link in links if link.get("remote") not in at]
        to_switch = [link for link in rest if leads_to_switch(link)]
        ids = (switch_id(link) for link in to_switch)
        ends.append(
            Ends(
                tuple(others),
                len(to_switch),
                frozenset(one for one in ids if one),
                len(rest) - len(to_switch),
            )
        )
    return ends


def _direct(ends: Sequence[Ends], a: int, b: int) -> int:
    """Links between two GPUs. Where only one end could be read that one counts, else what both see."""
    seen = ends[a].gpus.count(b), ends[b].gpus.count(a)
    return min(seen) or max(seen)


def _domains(
    raw: Sequence[Raw], gpus: Sequence[GpuFact], ends: Sequence[Ends], pairs: Sequence[Raw]
) -> tuple[Domains, tuple[str, ...]]:
    """The domains of one host, and a doubt where they rest on an assumption.

    Switches that GPUs reach through other switches join them too (16 GPUs over two boards), so that NVML's word on which pairs reach each other, and a
    common fabric, join what disjoint switch ids would part.
    """
    direct = {(a, b): links for a, b in combinations(range(len(raw)), 2) if (links := _direct(ends, a, b))}
    reach = components(len(raw), [_pair(pair) for pair in pairs if pair.get("p2p_nvlink") == 0])
    together = {gpu: f"reach of GPU {group[0]}" for group in reach if len(group) > 1 for gpu in group}
    known = [
        end.switches | set(filter(None, [together.get(gpu), gpus[gpu].fabric]))
        for gpu, end in enumerate(ends)
    ]
    behind = [gpu for gpu, end in enumerate(ends) if end.to_switch]
    doubts: tuple[str, ...] = ()
    if not all(known[gpu] for gpu in behind):
        if any(known):  # some can be told: those that cannot stand alone rather than join every domain
            known = [ids or frozenset({f"GPU {gpu}"}) for gpu, ids in enumerate(known)]
            doubts = (
                f"where the NVLinks of {named([gpu for gpu in behind if f'GPU {gpu}' in known[gpu]])} lead cannot be read: taken as apart from the others",
            )
        else:
            doubts = (
                "the far ends of the NVLinks cannot be read and NVML does not say which GPUs reach each other: taken as one switch for all of them",
            )
    return domains_from_links(direct, [end.to_switch for end in ends], known), doubts


def _by_clique(domains: Sequence[tuple[int, ...]], gpus: Sequence[GpuFact]) -> tuple[tuple[int, ...], ...]:
    """Domains cut where a fabric manager has put their GPUs into different partitions."""
    groups: dict[tuple[int, str | None], list[int]] = {}
    for number, domain in enumerate(domains):
        for gpu in domain:
            groups.setdefault((number, gpus[gpu].fabric), []).append(gpu)
    return tuple(sorted(map(tuple, groups.values())))


def _nvlink_paths(domains: Sequence[tuple[int, ...]], ends: Sequence[Ends]) -> Iterator[tuple[Pair, str]]:
    """NVLinks between two GPUs: the direct ones, or what both have to the switch."""
    for a, b in (pair for domain in domains for pair in combinations(domain, 2)):
        links = _direct(ends, a, b) or min(ends[a].to_switch, ends[b].to_switch)
        if links:
            yield (a, b), f"NV{links}"


def _with_lost_links(gpu: GpuFact, raw: Raw, linked: Domains) -> GpuFact:
    """NVLinks that its siblings have and it lacks are a fault of this GPU, unless it could not be asked or has MIG on."""
    if "links" not in raw or raw.get("mig"):
        return gpu
    mark = f"GPU {gpu.index} has "
    told = [
        text.removeprefix(mark) for text in lost_links(linked.domains, linked.links) if text.startswith(mark)
    ]
    return replace(gpu, faults=(*gpu.faults, *told))


def _refused(raw: Sequence[Raw]) -> list[str]:
    """What NVML would not say, one sentence for each question and reason; lost GPUs and single NVLinks are told as faults of the GPU."""
    groups: dict[tuple[str, int], list[int]] = {}
    for gpu in raw:
        for question, code in gpu["errors"].items():
            name = "NVLinks" if question.startswith("NVLink ") else question.replace("_", " ")
            if (
                (question, code) not in EXPECTED
                and code not in {4, 15, 16}
                and not (name == "NVLinks" and code != 13)
            ):
                groups.setdefault((name, code), []).append(gpu["index"])
    return [
        f"NVML does not give {name} of {named(members)}: {error_text(code)}"
        for (name, code), members in groups.items()
    ]


def _peer_faults(pairs: Sequence[Raw], raw: Sequence[Raw]) -> list[str]:
    """GPU pairs that cannot read each other's memory, by reason: their traffic goes through the host's memory."""
    mig = {gpu["index"] for gpu in raw if gpu.get("mig")}
    groups: dict[int, list[str]] = {}
    for pair in pairs:
        if pair.get("p2p_read", 0) and not mig & set(pair["gpus"]):
            groups.setdefault(pair["p2p_read"], []).append("-".join(map(str, pair["gpus"])))
    shown = [
        (P2P.get(code, f"status {code}"), ", ".join(found[:6]), len(found) - 6)
        for code, found in sorted(groups.items())
    ]
    return [
        f"no direct peer access between GPUs {some}{f' and {more} more pairs' if more > 0 else ''} ({why}): their traffic goes through host memory"
        for why, some, more in shown
    ]


def _pair(pair: Raw) -> Pair:
    return pair["gpus"][0], pair["gpus"][1]


def named(members: Sequence[int]) -> str:
    """'GPU 3' or 'GPUs 0, 1, 3'."""
    return f"GPU{'s' if len(members) > 1 else ''} {', '.join(map(str, members))}"
