"""Paths and NVLink domains of one host from several sources, the best evidence first."""

from collections.abc import Mapping, Sequence

from probes.base.facts import PATHS, HostFacts
from probes.machine.ledger import Ledger, Places
from probes.machine.nvlink_domains import Domains, links_of

Paths = dict[tuple[int, int], str]
_UNCERTAIN = {"PHB", "NODE"}  # the XML of NCCL cannot tell them apart, so a difference between them is none


def merge_links(
    facts: Sequence[HostFacts], gpu_places: Places, nic_places: Places, gpus: int, ledger: Ledger
) -> tuple[Paths, Paths, Domains | None]:
    """Paths of pairs of GPUs, paths of GPUs to NICs, and NVLink domains, in our indices.

    A source that knows NVLink wins over one that knows PCIe distances alone.
    """
    gpu_paths: Paths = {}
    nic_paths: Paths = {}
    for fact, places, nics in zip(facts, gpu_places, nic_places, strict=True):
        for pair, path in _gpu_paths(fact, places).items():
            if pair not in gpu_paths or (links_of(path) and not links_of(gpu_paths[pair])):
                gpu_paths[pair] = path
        _add_nic_paths(nic_paths, _nic_paths(fact, places, nics), fact, ledger)
    return gpu_paths, nic_paths, _domains(facts, gpu_places, gpus, ledger)


def _gpu_paths(fact: HostFacts, places: Mapping[int, int]) -> Paths:
    paths: Paths = {}
    for (i, j), path in fact.gpu_paths.items():
        if i in places and j in places:
            low, high = sorted((places[i], places[j]))
            paths[low, high] = path
    return paths


def _nic_paths(fact: HostFacts, places: Mapping[int, int], nics: Mapping[int, int]) -> Paths:
    shown = [(i, j, path) for (i, j), path in fact.nic_paths.items() if i in places and j in nics]
    return {(places[i], nics[j]): path for i, j, path in shown}


def _add_nic_paths(known: Paths, more: Paths, fact: HostFacts, ledger: Ledger) -> None:
    both = [(pair, {known[pair], path}) for pair, path in more.items() if pair in known]
    differ = [(pair, words) for pair, words in both if len(words) > 1 and not words <= _UNCERTAIN]
    near = [pair for pair, words in differ if words & set(PATHS[:2])]
    if near:
        gpu, nic = near[0]
        shown = f"GPU {gpu} to NIC {nic} is {known[gpu, nic]}, {fact.source} says {more[gpu, nic]}"
        ledger.warn(f"{len(near)} distances to NICs differ between sources: {shown}; the first is used")
    for pair, path in more.items():
        known.setdefault(pair, path)


def _domains(facts: Sequence[HostFacts], gpu_places: Places, gpus: int, ledger: Ledger) -> Domains | None:
    """Those of the first source that knows what kind they are, else of the first that knows any."""
    told = [
        (fact, _domains_of(fact, fact.domains, places, gpus))
        for fact, places in zip(facts, gpu_places, strict=True)
        if fact.domains is not None
    ]
    if not told:
        return None
    chosen, domains = next(((fact, one) for fact, one in told if one.kind is not None), told[0])
    ledger.credit("host", 0, "nvlink", chosen)
    kept = [list(group) for group in domains.domains]
    for fact, other in told:
        if other.domains != domains.domains:
            others = [list(group) for group in other.domains]
            ledger.differ("the list of NVLink domains", kept, chosen.source, others, fact.source)
    return domains


def _domains_of(
    fact: HostFacts, told: Sequence[tuple[int, ...]], places: Mapping[int, int], gpus: int
) -> Domains:
    groups = [tuple(sorted(places[gpu] for gpu in group)) for group in told]
    members = {gpu for group in groups for gpu in group}
    groups += [(gpu,) for gpu in range(gpus) if gpu not in members]
    links = {places[gpu.index]: gpu.nvlinks for gpu in reversed(fact.gpus)}
    return Domains(fact.nvlink_kind, tuple(sorted(groups)), tuple(links.get(gpu) for gpu in range(gpus)))
