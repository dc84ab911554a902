"""Which facts are of the same host, and one `Host` of all of them. A value that two sources tell differently is said with both; the better evidence counts.

Hosts are told apart by name, then by the UUIDs of their GPUs. Facts without either (a pasted matrix, an ibstat) are taken as parts of one host when each is
of another kind; two of one kind are never taken as two hosts in silence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from planner.base import EVIDENCE_KINDS, Evidence
from probes.base.facts import GpuFact, HostFacts, NicFact
from probes.machine.merge_parts import Conflicts, merge_gpus, merge_links, merge_nics
from probes.machine.nvlink_domains import Domains

NO_NAMES = frozenset({"", "localhost", "localhost.localdomain", "(none)"})


@dataclass(frozen=True)
class Host:
    """One host as all sources together describe it. `evidence` is of single values, by 'gpu', 'nic' or 'host', index, and field."""

    name: str
    sources: tuple[str, ...]
    kinds: tuple[str, ...]
    gpus: tuple[GpuFact, ...]
    nics: tuple[NicFact, ...]
    gpu_paths: dict[tuple[int, int], str]
    nic_paths: dict[tuple[int, int], str]
    links: Domains | None  # None: which GPUs NVLink joins is not known
    evidence: dict[tuple[str, int, str], Evidence]

    @property
    def title(self) -> str:
        return f"host {self.name}" if self.name else f"the host of {self.sources[0]}"

    def source_of(self, part: str, index: int, name: str) -> Evidence:
        return self.evidence[part, index, name]


@dataclass
class Notes:
    """Sentences, in the order in which they come up."""

    unknown: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def merge_hosts(facts: Sequence[HostFacts], nodes: int | None, notes: Notes) -> tuple[Host, ...]:
    """The hosts that the facts describe: named ones in the order given, then unnamed ones. `nodes` is how many there are, where a person said it."""
    hosts = tuple(_merged(group, notes) for group in _groups(facts, nodes, notes))
    owner: dict[str, int] = {}
    for number, host in enumerate(hosts):
        twice = next(
            (gpu.uuid for gpu in host.gpus if gpu.uuid and owner.setdefault(gpu.uuid, number) != number), None
        )
        if twice:
            first = hosts[owner[twice]]
            notes.unknown.append(
                f"the GPU {twice} is on {first.title} and on {host.title}; it is counted twice: give each host once"
            )
    return hosts


def _groups(facts: Sequence[HostFacts], nodes: int | None, notes: Notes) -> list[list[HostFacts]]:
    named: dict[str, list[list[HostFacts]]] = {}
    loose: list[HostFacts] = []
    for fact in facts:
        name = _name(fact)
        if name:
            _add(named.setdefault(name, []), fact, notes)
        else:
            loose.append(fact)
    groups = [group for same in named.values() for group in same]
    rest = [fact for fact in loose if not _join_known(groups, fact)]
    if not rest:
        return groups
    parts = _unnamed(rest, nodes, notes)
    if len(groups) == 1 and len(parts) == 1 and not _contradict(groups[0], parts[0]):
        notes.warnings.append(f"{_sources(parts[0])} name no host: taken as of {_name(groups[0][0])}")
        return [groups[0] + parts[0]]
    if groups and not any(fact.gpus for part in parts for fact in part):
        notes.unknown.append(
            f"{_sources(rest)} name no host, and there are several: not used; take them again with the host's name before each line"
        )
        return groups
    return groups + parts


def _name(fact: HostFacts) -> str:
    name = (fact.host or "").strip()
    return "" if name.lower() in NO_NAMES else name


def _add(same: list[list[HostFacts]], fact: HostFacts, notes: Notes) -> None:
    """Facts of one host name go together, unless their GPUs are other ones: then the name is used twice."""
    fitting = next((group for group in same if not _contradict(group, [fact])), None)
    if fitting is not None:
        fitting.append(fact)
        return
    if same:
        notes.warnings.append(
            f"{fact.source}: names the host {fact.host} like {same[0][0].source}, but its GPUs have other UUIDs: taken as another host"
        )
    same.append([fact])


def _uuids(facts: Sequence[HostFacts]) -> set[str]:
    return {gpu.uuid for fact in facts for gpu in fact.gpus if gpu.uuid}


def _machines(facts: Sequence[HostFacts]) -> set[str]:
    return {fact.machine for fact in facts if fact.machine}


def _guids(facts: Sequence[HostFacts]) -> set[str]:
    return {nic.guid for fact in facts for nic in fact.nics if nic.guid}


def _contradict(one: Sequence[HostFacts], other: Sequence[HostFacts]) -> bool:
    """Whether both name GPUs (or NICs by GUID, or the machine) and share none."""
    return any(
        marks(one) and marks(other) and not marks(one) & marks(other) for marks in (_uuids, _guids, _machines)
    )


def _join_known(groups: list[list[HostFacts]], fact: HostFacts) -> bool:
    """Add an unnamed fact to the host that has its GPUs or NICs."""
    for group in groups:
        if any(marks(group) & marks([fact]) for marks in (_uuids, _guids, _machines)):
            group.append(fact)
            return True
    return False


def _unnamed(facts: list[HostFacts], nodes: int | None, notes: Notes) -> list[list[HostFacts]]:
    """Groups of facts that name no host: those of different kinds together, those of one kind apart where they cannot be the same host."""
    groups: list[list[HostFacts]] = []
    doubtful: list[str] = []
    for fact in facts:
        if _join_known(groups, fact):
            continue
        alike = next(
            (group for group in groups for other in group if other.kind == fact.kind and _same(other, fact)),
            None,
        )
        open_groups = [
            group
            for group in groups
            if all(other.kind != fact.kind for other in group) and not _contradict(group, [fact])
        ]
        if alike is not None:
            if nodes is None:
                both = f"{fact.source} and {alike[0].source} look the same and name no host"
                doubtful.append(f"{both}: taken as one host told twice; say --nodes 2 if they are two")
        elif open_groups:
            open_groups[0].append(fact)
            if len(open_groups) > 1:
                doubtful.append(
                    f"{fact.source} names no host and could be of several; taken as of the host of {open_groups[0][0].source}"
                )
        else:
            groups.append([fact])
            if len(groups) > 1:
                both = f"{fact.source} and {groups[0][0].source} differ and name no host"
                doubtful.append(f"{both}: taken as two hosts; give only one of them if they are one")
    notes.unknown += doubtful
    notes.warnings += [
        f"{_sources(group)} name no host: taken as one host"
        for group in groups
        if len({fact.source for fact in group}) > 1
    ]
    return groups


def _same(one: HostFacts, other: HostFacts) -> bool:
    return replace(one, source="", warnings=(), unknown=()) == replace(
        other, source="", warnings=(), unknown=()
    )


def _sources(facts: Sequence[HostFacts]) -> str:
    return " and ".join(dict.fromkeys(fact.source for fact in facts))


def _merged(group: list[HostFacts], notes: Notes) -> Host:
    facts = sorted(group, key=lambda fact: EVIDENCE_KINDS.index(fact.evidence))  # stable: of equals the first
    name = next((_name(fact) for fact in facts if _name(fact)), "")
    where = f"host {name}: " if name else ""
    conflicts = Conflicts(where, notes.warnings)
    evidence: dict[tuple[str, int, str], Evidence] = {}
    gpus, gpu_places = merge_gpus(facts, evidence, conflicts)
    nics, nic_places = merge_nics(facts, evidence, conflicts)
    gpu_paths, nic_paths, links = merge_links(facts, gpu_places, nic_places, len(gpus), evidence, conflicts)
    notes.unknown += [f"{where}{fact.source}: {sentence}" for fact in facts for sentence in fact.unknown]
    notes.warnings += [f"{where}{fact.source}: {sentence}" for fact in facts for sentence in fact.warnings]
    sources, kinds = (
        tuple(dict.fromkeys(words))
        for words in ((fact.source for fact in facts), (fact.kind for fact in facts))
    )
    return Host(name, sources, kinds, gpus, nics, gpu_paths, nic_paths, links, evidence)
