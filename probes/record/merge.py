"""Probe files of several hosts to the facts of one cluster.

Hosts are told apart by their GPUs' UUIDs and their running kernel before their names.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from planner.base import BadInput
from probes.base.facts import HostFacts
from probes.fabric.naming import natural
from probes.ranks.launch import Launch
from probes.record.file import ProbeRecord, read_record

Named = tuple[str, ProbeRecord]  # a file and what it holds


def merge(paths: Sequence[str | Path]) -> tuple[HostFacts, ...]:
    """The hosts in rank order: as the launcher counted them, else by name (node7 before node66).

    What is missing from the set or was repaired in it is said in the first host's `unknown` and `warnings`.
    BadInput where two files cannot both be true.
    """
    if not paths:
        what_to_do = "run 'moeplan probe' on every host and hand over the files that it writes"
        raise BadInput(f"no probe file is given; {what_to_do}")
    return merge_records([(str(path), read_record(path)) for path in paths])


def merge_records(named: Sequence[Named]) -> tuple[HostFacts, ...]:
    """As `merge`, of records in memory with the names of their files."""
    kept, warnings = _newest_of_each(sorted(named, key=lambda one: natural(one[0])))
    kept, renamed = _own_names(kept)
    ordered = _in_rank_order(kept)
    launches = [record.launch for _, record in ordered if record.launch is not None]
    one_run = len({launch.run for launch in launches}) <= 1
    if not one_run:
        warnings.append(
            "the probe files are of several launches: whether a host is missing cannot be told, "
            "and files of an earlier launch may be among them"
        )
    unknown = _missing(launches, ordered) if one_run else ()
    first, *others = (
        replace(record.host, source=f"{record.host.source}, probed {record.taken}") for _, record in ordered
    )
    warnings += [*renamed, *first.warnings]
    return replace(first, unknown=(*unknown, *first.unknown), warnings=tuple(warnings)), *others


def _newest_of_each(named: Sequence[Named]) -> tuple[list[Named], list[str]]:
    """One record a host.

    The same GPU in two hosts, and two partial views of one machine, cannot be put right here.
    """
    kept: dict[str, ProbeRecord] = {}
    owner: dict[str, str] = {}  # a GPU's UUID or a machine -> the file it came from
    warnings = []
    for file, record in named:
        marks = _uuids(record) | ({record.host.machine} if record.host.machine else set())
        for rival in sorted({owner[mark] for mark in marks if mark in owner}):
            _refuse_contradiction(file, record, rival, kept[rival])
            taken, later = max((record.taken, file), (kept[rival].taken, rival))
            both = f"{rival} and {file} are both of {record.host.host}"
            warnings.append(f"{both}: the later one, {later} of {taken}, is used")
            if later == file:
                del kept[rival]
                owner = {mark: holder for mark, holder in owner.items() if holder != rival}
            else:
                break
        else:
            kept[file] = record
            owner |= dict.fromkeys(marks, file)
    return list(kept.items()), warnings


def _refuse_contradiction(file: str, record: ProbeRecord, rival: str, other: ProbeRecord) -> None:
    hosts = f"{rival} ({other.host.host}) and {file} ({record.host.host})"
    shared = sorted(_uuids(record) & _uuids(other))
    same_machine = record.host.machine is not None and record.host.machine == other.host.machine
    if shared and not same_machine and record.host.host != other.host.host:
        impossible = f"GPU {shared[0]} is in both, and one GPU cannot sit in two hosts"
        raise BadInput(f"{hosts}: {impossible}; leave out the file that is wrong or old")
    if not shared and _uuids(record) and _uuids(other):
        raise BadInput(f"{hosts}: different GPUs of one machine; probe it once, where all are seen")


def _own_names(named: Sequence[Named]) -> tuple[list[Named], list[str]]:
    """Different hosts of one name ('localhost') are told apart by their machine."""
    count = Counter(record.host.host for _, record in named)
    kept, warnings = [], []
    for number, (file, record) in enumerate(named):
        host = record.host
        if count[host.host] > 1:
            own = f"{host.host}-{(host.machine or str(number))[:6]}"
            alike = f"{count[host.host]} different hosts are called {host.host}"
            warnings.append(f"{alike}: the one of {file} is called {own} here")
            host = replace(host, host=own)
        kept.append((file, replace(record, host=host)))
    return kept, warnings


def _in_rank_order(named: Sequence[Named]) -> list[Named]:
    """As the launcher counted them where it counted all of them once, else by name."""
    launches = [record.launch for _, record in named if record.launch is not None]
    places = [launch.rank if launch.node is None else launch.node for launch in launches]
    one_run = len({launch.run for launch in launches}) == 1
    if one_run and len(places) == len(named) == len(set(places)):
        return [one for _, one in sorted(zip(places, named, strict=True), key=lambda pair: pair[0])]
    return sorted(named, key=lambda one: natural(one[1].host.host or ""))


def _missing(launches: Sequence[Launch], named: Sequence[Named]) -> tuple[str, ...]:
    """A cluster that is not whole must not pass for a small one. Told by the launcher's own counts."""
    seen = ", ".join(str(record.host.host) for _, record in named)
    nodes = max((launch.nodes or 0 for launch in launches), default=0)
    if nodes:
        told = {launch.node for launch in launches}
        absent = [str(node) for node in range(nodes) if node not in told]
        unseen = f"node {', '.join(absent)} of {nodes} that were started has no probe file"
        return (f"{unseen} (there are those of {seen}): the cluster is larger",) if absent else ()
    if not all(launch.local_world for launch in launches):
        return ()
    world = max((launch.world for launch in launches), default=0)
    spoken_for = sum(launch.local_world or 0 for launch in launches)
    ranks = f"the probe files speak for {spoken_for} of {world} ranks (hosts {seen})"
    return (f"{ranks}: the cluster is larger",) if spoken_for < world else ()


def _uuids(record: ProbeRecord) -> set[str]:
    return {gpu.uuid for gpu in record.host.gpus if gpu.uuid}
