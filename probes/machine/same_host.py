"""Which facts are of the same host.

Hosts are told apart by name, then by the UUIDs of their GPUs. Facts without either (a pasted matrix, an
ibstat) are taken as parts of one host when each is of another kind, or of one file; two of one kind are never
taken as two hosts in silence.
"""

from collections.abc import Sequence
from dataclasses import replace

from probes.base.facts import HostFacts
from probes.machine.host import Notes
from probes.machine.parts import parts_of

NO_NAMES = frozenset({"", "localhost", "localhost.localdomain", "(none)"})


def same_host(facts: Sequence[HostFacts], nodes: int | None, notes: Notes) -> list[list[HostFacts]]:
    """The facts of each host: named hosts in the order given, then unnamed ones."""
    named: dict[str, list[list[HostFacts]]] = {}
    loose: list[HostFacts] = []
    for fact in facts:
        name = name_of(fact)
        if name:
            _add(named.setdefault(name, []), fact, notes)
        else:
            loose.append(fact)
    groups = [group for same in named.values() for group in same]
    rest = [part for part in parts_of(loose) if not _join_known(groups, part)]
    if not rest:
        return groups
    parts = _unnamed(rest, nodes, notes)
    if len(groups) > 1 and len(parts) == 1 and _fits_all(groups, parts[0]):
        names = ", ".join(name_of(group[0]) for group in groups[:4]) + (", ..." if len(groups) > 4 else "")
        notes.warnings.append(f"{_sources(parts[0])} name no host: taken as of each of {names}")
        alike = [_without_marks(fact) for fact in parts[0]]
        return [group + alike for group in groups]
    if len(groups) == 1 and len(parts) == 1 and not _contradict(groups[0], parts[0]):
        notes.warnings.append(f"{_sources(parts[0])} name no host: taken as of {name_of(groups[0][0])}")
        return [groups[0] + parts[0]]
    if groups and not any(fact.gpus for part in parts for fact in part):
        sources = _sources([fact for part in rest for fact in part])
        unused = f"{sources} name no host, and there are several: not used"
        notes.unknown.append(f"{unused}; take them again with the host's name before each line")
        return groups
    return groups + parts


def name_of(fact: HostFacts) -> str:
    name = (fact.host or "").strip()
    return "" if name.lower() in NO_NAMES else name


def _add(same: list[list[HostFacts]], fact: HostFacts, notes: Notes) -> None:
    """Facts of one host name go together, unless their GPUs are other ones: then the name is used twice."""
    fitting = next((group for group in same if not _contradict(group, [fact])), None)
    if fitting is not None:
        fitting.append(fact)
        return
    if same:
        both = f"{fact.source}: names the host {fact.host} like {same[0][0].source}"
        notes.warnings.append(f"{both}, but its GPUs have other UUIDs: taken as another host")
    same.append([fact])


def _uuids(facts: Sequence[HostFacts]) -> set[str]:
    return {gpu.uuid for fact in facts for gpu in fact.gpus if gpu.uuid}


def _machines(facts: Sequence[HostFacts]) -> set[str]:
    return {fact.machine for fact in facts if fact.machine}


def _guids(facts: Sequence[HostFacts]) -> set[str]:
    return {nic.guid for fact in facts for nic in fact.nics if nic.guid}


def _contradict(one: Sequence[HostFacts], other: Sequence[HostFacts]) -> bool:
    """Whether both name GPUs (or NICs by GUID, or the machine) and share none."""
    marked = [(marks(one), marks(other)) for marks in (_uuids, _guids, _machines)]
    return any(mine and theirs and not mine & theirs for mine, theirs in marked)


def _join_known(groups: list[list[HostFacts]], part: list[HostFacts]) -> bool:
    """Add facts that name no host to the one that has their GPUs or NICs."""
    for group in groups:
        if any(marks(group) & marks(part) for marks in (_uuids, _guids, _machines)):
            group.extend(part)
            return True
    return False


def _fits_all(groups: Sequence[Sequence[HostFacts]], part: Sequence[HostFacts]) -> bool:
    """Whether a description without a name can stand for every named host: as many GPUs, other kinds.

    A list of GUIDs names hosts of which nobody says that they have GPUs.
    """
    gpus = max((len(fact.gpus) for fact in part), default=0)
    kinds = {fact.kind for fact in part}
    return gpus > 0 and all(
        not kinds & {fact.kind for fact in group}
        and {len(fact.gpus) for fact in group if fact.gpus} <= {gpus}
        and not any(fact.kind == "guid-list" for fact in group)
        for group in groups
    )


def _without_marks(fact: HostFacts) -> HostFacts:
    """Without what only one machine has."""
    gpus = tuple(replace(gpu, uuid=None, fabric=None) for gpu in fact.gpus)
    return replace(fact, machine=None, gpus=gpus, nics=tuple(replace(nic, guid=None) for nic in fact.nics))


def _unnamed(parts: list[list[HostFacts]], nodes: int | None, notes: Notes) -> list[list[HostFacts]]:
    """Groups of facts that name no host.

    What is one part, as of one file, stays together; of the rest, those of different kinds go
    together, and those of one kind apart. With `nodes` stated, parts that look the same are one host.
    """
    groups: list[list[HostFacts]] = []
    doubtful: list[str] = []
    for part in parts:
        if _join_known(groups, part):
            continue
        open_groups = [group for group in groups if all(_takes(group, fact) for fact in part)]
        first = groups[0][0].source if groups else ""
        mine = part[0].source
        if not open_groups and any(_alike(group, part) for group in groups):
            if nodes is not None and nodes != len(groups) + 1:
                continue  # one host told twice, and repeated as often as was stated
            groups.append(part)
            both = f"{mine} and {first} look the same and name no host"
            doubtful.append(f"{both}: taken as two hosts alike; give only one of them if they are one")
        elif open_groups:
            if len(open_groups) > 1:
                several = f"{mine} names no host and could be of several"
                doubtful.append(f"{several}; taken as of the host of {open_groups[0][0].source}")
            open_groups[0] += part
        else:
            sure = all(_contradict(group, part) for group in groups)
            groups.append(part)
            if not sure:
                both = f"{mine} and {first} differ and name no host"
                doubtful.append(f"{both}: taken as two hosts; give only one of them if they are one")
    told = notes.warnings if nodes == len(groups) else notes.unknown
    told += doubtful
    several_sources = [group for group in groups if len({fact.source for fact in group}) > 1]
    notes.warnings += [f"{_sources(group)} name no host: taken as one host" for group in several_sources]
    return groups


def _alike(group: Sequence[HostFacts], part: Sequence[HostFacts]) -> bool:
    """Whether they tell the same, but for what marks a host."""
    return any(_same(one, other) for one in group for other in part) and not _contradict(group, part)


def _same(one: HostFacts, other: HostFacts) -> bool:
    """Whether both are of one kind and tell the same."""
    told = [replace(fact, source="", warnings=(), unknown=()) for fact in (one, other)]
    return told[0] == told[1]


def _takes(group: list[HostFacts], fact: HostFacts) -> bool:
    """Whether the fact can be another part of that host."""
    return all(other.kind != fact.kind for other in group) and not _contradict(group, [fact])


def _sources(facts: Sequence[HostFacts]) -> str:
    return " and ".join(dict.fromkeys(fact.source for fact in facts))
