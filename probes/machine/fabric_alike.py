"""A fabric's leaves where one host is described and not which of the fabric's hosts it is.

A paste of `topo -m` names no host; Slurm's tree or a cloud's labels name all of them. With --nodes, all are
taken as like the one described, and leaves as full as the fabric shows them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from probes.base.facts import FabricFacts, PortFact
from probes.machine.host import Host, Notes


@dataclass(frozen=True)
class Alike:
    """`leaves` that the hosts are taken to be on, each with so many; empty where only blocks are told.

    `ports` are the cables of each host on them.
    """

    source: str
    leaves: set[str]
    hosts_per_leaf: int
    ports: tuple[tuple[PortFact, ...], ...] = ()


def alike_hosts(hosts: Sequence[Host], facts: Sequence[FabricFacts], notes: Notes) -> Alike | None:
    """None where no fabric tells of any host, several hosts are described, or leaves are unequal: said."""
    fact = next((fact for fact in facts if fact.ports or fact.blocks), None)
    if fact is None:
        return None
    shown = _ports_of(fact) or {host: () for members in fact.blocks.values() for host in members}
    one = hosts[0].gpus is hosts[-1].gpus  # copies of one description
    if not one or len(hosts) == 1:
        _say_unused(hosts, fact, len(shown), notes)
        return None
    groups = _groups(shown) if fact.ports else [tuple(members) for members in fact.blocks.values()]
    taken = _fullest(groups, len(hosts))
    sizes = [len(group) for group in taken]
    if not sizes or len(set(sizes[:-1])) > 1:
        told = f"{fact.source}: its leaves hold {', '.join(map(str, sizes[:12]))} hosts"
        notes.unknown.append(f"{told}; unequal leaves cannot be planned for: taken as flat")
        return None
    _say_taken(hosts, fact, len(shown), sizes[0], notes)
    members = [host for group in taken for host in group]
    ports = tuple(shown[host] for host in members) if fact.ports else ()
    leaves = {port.leaf for mine in ports for port in mine}
    return Alike(fact.source, leaves, sizes[0], ports)


def _ports_of(fact: FabricFacts) -> dict[str, tuple[PortFact, ...]]:
    found: dict[str, list[PortFact]] = defaultdict(list)
    for port in fact.ports:
        if not port.host.startswith("guid:"):  # adapters that name no host stand alone
            found[port.host].append(port)
    return {host: tuple(ports) for host, ports in found.items()}


def _groups(shown: Mapping[str, Sequence[PortFact]]) -> list[tuple[str, ...]]:
    """The hosts that share all their leaves."""
    groups: dict[frozenset[str], list[str]] = defaultdict(list)
    for host, ports in shown.items():
        groups[frozenset(port.leaf for port in ports)].append(host)
    return [tuple(members) for members in groups.values()]


def _fullest(groups: Sequence[tuple[str, ...]], nodes: int) -> list[tuple[str, ...]]:
    """The fullest groups that so many hosts fill, all where they are more."""
    taken: list[tuple[str, ...]] = []
    for group in sorted(groups, key=len, reverse=True):
        if sum(map(len, taken)) < nodes:
            taken.append(group)
    return taken


def _say_unused(hosts: Sequence[Host], fact: FabricFacts, shown: int, notes: Notes) -> None:
    titles = ", ".join(dict.fromkeys(host.title for host in hosts[:4]))
    if len(hosts) == 1:
        count = f"{fact.source} shows {shown} hosts and no cable of {titles} by name or GUID"
        notes.unknown.append(f"{count}: it is not used; give --nodes {shown} if all are like it")
        return
    none = f"{fact.source} shows no cable of {titles} by name or GUID"
    notes.unknown.append(f"{none}; it is not used, the network is taken as flat")


def _say_taken(hosts: Sequence[Host], fact: FabricFacts, shown: int, each: int, notes: Notes) -> None:
    group = "leaf" if fact.ports else "block, taken as a leaf"
    alike = f"its hosts are taken as like the one described, {each} to a {group}"
    notes.warnings.append(f"{hosts[0].title} is none of {fact.source} by name: {alike}")
    if len(hosts) > shown:
        more = f"{fact.source} shows {shown} hosts, --nodes says {len(hosts)}"
        notes.unknown.append(f"{more}; the others are taken as on leaves as full")
