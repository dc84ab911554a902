"""GPUs, NICs and paths of one host from several sources, the best evidence first. Pure; what the sources tell differently is said with both values."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from planner.base import Evidence, human_bandwidth
from probes.base.facts import PATHS, GpuFact, HostFacts, NicFact
from probes.machine.nvlink_domains import Domains, links_of

Places = list[dict[int, int]]  # for each source: its own index -> ours
EvidenceMap = dict[tuple[str, int, str], Evidence]
_PLACEHOLDER = re.compile(r"NIC\d{1,4}\??")  # the driver's number for a NIC, which says nothing of the device
_UNCERTAIN = ("PHB", "NODE")  # the XML of NCCL cannot tell them apart, so a difference between them is none


@dataclass
class Conflicts:
    """Where two sources differ: a sentence with both values."""

    where: str
    warnings: list[str]

    def say(self, what: str, kept: object, kept_source: str, other: object, other_source: str) -> None:
        self.warnings.append(
            f"{self.where}{what} is {kept} in {kept_source} and {other} in {other_source}; {kept} is used"
        )


def merge_gpus(
    facts: Sequence[HostFacts], evidence: EvidenceMap, conflicts: Conflicts
) -> tuple[tuple[GpuFact, ...], Places]:
    """The GPUs in the order of the first source that has any; others are matched by UUID, then PCI address, then index."""
    sources = [fact for fact in facts if fact.gpus]
    counts = {len(fact.gpus) for fact in sources}
    if len(counts) > 1:
        shown = ", ".join(f"{len(fact.gpus)} in {fact.source}" for fact in sources)
        conflicts.warnings.append(
            f"{conflicts.where}the sources show different numbers of GPUs: {shown}; {max(counts)} is used"
        )
    gpus: list[GpuFact] = []
    places: Places = []
    for fact in facts:
        mine: dict[int, int] = {}
        for gpu in fact.gpus:
            place = _place_of_gpu(gpu, gpus, set(mine.values()))
            if place == len(gpus):
                gpus.append(GpuFact(place))
            mine[gpu.index] = place
            gpus[place] = _fill(
                gpus[place], replace(gpu, index=place), fact, ("gpu", place), evidence, conflicts
            )
        places.append(mine)
    return tuple(gpus), places


def _place_of_gpu(gpu: GpuFact, known: Sequence[GpuFact], taken: set[int]) -> int:
    for key in ("uuid", "pci"):
        value = getattr(gpu, key)
        match = next(
            (place for place, other in enumerate(known) if value and getattr(other, key) == value), None
        )
        if match is not None:
            return match
    free = [place for place in range(len(known)) if place not in taken and not _other_gpu(gpu, known[place])]
    return gpu.index if gpu.index in free else len(known)


def _other_gpu(one: GpuFact, other: GpuFact) -> bool:
    return any(
        getattr(one, key) and getattr(other, key) and getattr(one, key) != getattr(other, key)
        for key in ("uuid", "pci")
    )


def merge_nics(
    facts: Sequence[HostFacts], evidence: EvidenceMap, conflicts: Conflicts
) -> tuple[tuple[NicFact, ...], Places]:
    """The NICs in the order of the first source with paths to GPUs (its names are kept), then those that only others show; matched by device, then PCI."""
    order = sorted(range(len(facts)), key=lambda place: not facts[place].nic_paths)
    nics: list[NicFact] = []
    places: Places = [{} for _ in facts]
    for number in order:
        fact = facts[number]
        strangers = [nic for nic in fact.nics if _place_of_nic(nic, nics) is None]
        if nics and strangers and all(_PLACEHOLDER.fullmatch(nic.name) and not nic.device for nic in nics):
            _apply_alike(fact, nics, evidence, conflicts)
            continue
        for index, nic in enumerate(fact.nics):
            place = _place_of_nic(nic, nics)
            if place is None:
                place = len(nics)
                nics.append(NicFact(nic.name))
            places[number][index] = place
            nics[place] = _fill(
                nics[place], replace(nic, name=nics[place].name), fact, ("nic", place), evidence, conflicts
            )
            if (
                nic.name != nics[place].name
                and nics[place].device is None
                and nic.name not in (nic.pci, None)
            ):
                nics[place] = replace(nics[place], device=nic.name)
    return tuple(nics), places


def _place_of_nic(nic: NicFact, known: Sequence[NicFact]) -> int | None:
    """The same device, or the same PCI function where one side is known by that alone."""
    name = nic.device or nic.name
    if not _PLACEHOLDER.fullmatch(name):
        for place, other in enumerate(known):
            if name == other.name or (name == other.device and nic.name in (name, other.name)):
                return place
    at = [
        place
        for place, other in enumerate(known)
        if nic.pci and other.pci == nic.pci and (other.name == other.pci or nic.name == nic.pci)
    ]
    return at[0] if len(at) == 1 else None


def _apply_alike(fact: HostFacts, nics: list[NicFact], evidence: EvidenceMap, conflicts: Conflicts) -> None:
    """Rates for NICs whose devices are not named, where every device of the other source has the same rate: then who is who does not matter."""
    rates = {nic.rate_bytes_per_s for nic in fact.nics if nic.compute is not False}
    alike = (
        len(rates) == 1
        and None not in rates
        and len(fact.nics) == len(nics)
        and all(nic.up is not False for nic in fact.nics)
    )
    if not alike:
        names = f"{nics[0].name} to {nics[-1].name}"
        conflicts.warnings.append(
            f"{conflicts.where}{fact.source} cannot be matched with {names}: the legend with their device names is missing; not used"
        )
        return
    rate = next(iter(rates))
    conflicts.warnings.append(
        f"{conflicts.where}all NICs of {fact.source} have the same rate, so it is used for {nics[0].name} to {nics[-1].name}"
    )
    for place, nic in enumerate(nics):
        if nic.rate_bytes_per_s is None:
            nics[place] = replace(nic, rate_bytes_per_s=rate)
            evidence["nic", place, "rate_bytes_per_s"] = Evidence(fact.evidence, fact.source)


def _fill(
    known: Any,
    more: Any,
    fact: HostFacts,
    where: tuple[str, int],
    evidence: EvidenceMap,
    conflicts: Conflicts,
) -> Any:
    """`known` with what it lacks from `more`, faults of both. Values that differ are told; those of `known` stay."""
    changes: dict[str, Any] = {}
    part, place = where
    for name in (field.name for field in fields(known) if field.name not in {"index", "faults"}):
        mine, theirs = getattr(known, name), getattr(more, name)
        if theirs is None or (part == "nic" and name == "name"):
            continue
        if mine is None:
            changes[name] = theirs
            evidence[part, place, name] = Evidence(fact.evidence, fact.source)
        elif not _agree(mine, theirs, name):
            kept = evidence[part, place, name].source
            label = f"{part.upper()} {known.name if part == 'nic' else place}: {_WORDS.get(name, name)}"
            conflicts.say(label, _text(mine, name), kept, _text(theirs, name), fact.source)
    return replace(known, **changes, faults=tuple(dict.fromkeys((*known.faults, *more.faults))))


_WORDS = {
    "rate_bytes_per_s": "rate",
    "nvlink_bytes_per_s": "NVLink rate",
    "pcie_bytes_per_s": "PCIe rate",
    "nvlinks": "number of active NVLinks",
}


def _agree(one: object, other: object, name: str) -> bool:
    if name in {"card", "guid", "device", "model", "pci_path"}:
        return True  # written differently by every tool
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 0.02 * max(one, other)
    return one == other


def _text(value: object, name: str) -> str:
    return human_bandwidth(value) if isinstance(value, float) and name.endswith("bytes_per_s") else str(value)


def merge_links(
    facts: Sequence[HostFacts],
    gpu_places: Places,
    nic_places: Places,
    gpus: int,
    evidence: EvidenceMap,
    conflicts: Conflicts,
) -> tuple[dict[tuple[int, int], str], dict[tuple[int, int], str], Domains | None]:
    """Paths and NVLink domains in our indices. A source that knows NVLink wins over one that knows PCIe distances alone."""
    gpu_paths: dict[tuple[int, int], str] = {}
    nic_paths: dict[tuple[int, int], str] = {}
    told: list[tuple[HostFacts, Domains]] = []
    for fact, places, nics in zip(facts, gpu_places, nic_places, strict=True):
        mine = {
            (min(places[i], places[j]), max(places[i], places[j])): path
            for (i, j), path in fact.gpu_paths.items()
            if i in places and j in places
        }
        for pair, path in mine.items():
            if pair not in gpu_paths or (links_of(path) and not links_of(gpu_paths[pair])):
                gpu_paths[pair] = path
        _add_nic_paths(
            nic_paths,
            {
                (places[i], nics[j]): path
                for (i, j), path in fact.nic_paths.items()
                if i in places and j in nics
            },
            fact,
            conflicts,
        )
        if fact.domains is not None:
            groups = tuple(sorted(tuple(sorted(places[gpu] for gpu in group)) for group in fact.domains))
            left = tuple((gpu,) for gpu in range(gpus) if not any(gpu in group for group in groups))
            links = tuple(
                next((gpu.nvlinks for gpu in fact.gpus if places[gpu.index] == place), None)
                for place in range(gpus)
            )
            told.append((fact, Domains(fact.nvlink_kind, tuple(sorted(groups + left)), links)))
    if not told:
        return gpu_paths, nic_paths, None
    chosen, domains = next(((fact, one) for fact, one in told if one.kind is not None), told[0])
    evidence["host", 0, "nvlink"] = Evidence(chosen.evidence, chosen.source)
    for fact, other in told:
        if other.domains != domains.domains:
            conflicts.say(
                "the list of NVLink domains",
                [list(group) for group in domains.domains],
                chosen.source,
                [list(g) for g in other.domains],
                fact.source,
            )
    return gpu_paths, nic_paths, domains


def _add_nic_paths(
    known: dict[tuple[int, int], str],
    more: Mapping[tuple[int, int], str],
    fact: HostFacts,
    conflicts: Conflicts,
) -> None:
    differ = [
        pair
        for pair, path in more.items()
        if pair in known and known[pair] != path and not {known[pair], path} <= set(_UNCERTAIN)
    ]
    near = [pair for pair in differ if {known[pair], more[pair]} & set(PATHS[:2])]
    if near:
        gpu, nic = near[0]
        shown = f"GPU {gpu} to NIC {nic} is {known[gpu, nic]}, {fact.source} says {more[gpu, nic]}"
        conflicts.warnings.append(
            f"{conflicts.where}{len(near)} distances to NICs differ between sources: {shown}; the first is used"
        )
    for pair, path in more.items():
        known.setdefault(pair, path)
