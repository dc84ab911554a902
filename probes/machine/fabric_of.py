"""The network between hosts to the planner's `Fabric`, and the order of the hosts.

Of it are known leaves or rails, oversubscription, and NVLink domains over hosts. The planner counts: so many
consecutive nodes share a leaf. So hosts are put in order leaf by leaf, and a fabric whose leaves are not
equally full (but for the last) is said to be one that cannot be described, not bent to fit.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.base import Evidence
from planner.topology import Fabric
from probes.base.facts import FabricFacts, PortFact
from probes.fabric.naming import natural
from probes.machine.fabric_alike import Alike, alike_hosts
from probes.machine.hints import Hints
from probes.machine.host import Host, Notes
from probes.machine.host_cables import Cables, cables_of, rails_of
from probes.machine.host_domains import block_of, domain_nodes, sizes_of_runs
from probes.machine.oversubscription import oversubscription_of


@dataclass(frozen=True)
class Shape:
    """A fabric and its hosts in the order that it counts in.

    `rails` is the rail of each NIC, by device name, where leaves are rails.
    """

    fabric: Fabric
    hosts: tuple[Host, ...]
    rails: Mapping[str, int]


@dataclass(frozen=True)
class _Network:
    """What is told of the network between hosts."""

    facts: Sequence[FabricFacts]
    cables: Cables
    oversubscription: float | None  # stated
    span: int  # hosts in one NVLink domain

    @property
    def first(self) -> FabricFacts:
        return next(fact for fact in self.facts if fact.ports)

    def leaves_of(self, host: Host) -> tuple[str, ...]:
        return tuple(sorted({port.leaf for port in self.cables[host.title]}, key=natural))


def fabric_of(hosts: Sequence[Host], facts: Sequence[FabricFacts], hints: Hints, notes: Notes) -> Shape:
    """The fabric of the hosts (copies of one host stand for others like it).

    What no source tells is assumed, and said. MissingFigureError where it is not known which hosts NVLink
    joins.
    """
    for fact in facts:
        notes.unknown += [f"{fact.source}: {sentence}" for sentence in fact.unknown]
        notes.warnings += [f"{fact.source}: {sentence}" for sentence in fact.warnings]
    span = domain_nodes(hosts, facts, hints, notes)
    network = _Network(facts, cables_of(hosts, facts), hints.oversubscription, span)
    cabled = sum(map(bool, network.cables.values()))
    if not cabled:
        alike = alike_hosts(hosts, facts, notes)
        return _of_alike(hosts, network, alike, notes) if alike else _assumed(hosts, network, notes)
    if len({id(host) for host in hosts}) == 1 or cabled == 1 < len(hosts):
        return _like_one(hosts, network, notes)
    return _of_all(hosts, network, notes)


def _assumed(hosts: Sequence[Host], network: _Network, notes: Notes) -> Shape:
    ratio, span = network.oversubscription, network.span
    if ratio is not None and ratio > 1:
        why = "stated by the user (--oversubscription): every host behind a leaf of its own"
        return Shape(Fabric("leaf-spine", Evidence("assumed", why), 1, ratio, span), tuple(hosts), {})
    if len(hosts) > 1:
        untold = "the switches between the hosts are in no source"
        notes.unknown.append(
            f"{untold}; the network is taken as flat, without a bottleneck: add 'ibnetdiscover'"
        )
    flat = Evidence("assumed", "no source tells the switches between hosts; taken as one flat network")
    return Shape(Fabric("none", flat, nvlink_domain_nodes=span), tuple(hosts), {})


def _of_all(hosts: Sequence[Host], network: _Network, notes: Notes) -> Shape:
    """Every host is described: they are put in order leaf by leaf."""

    def place(host: Host) -> tuple[object, ...]:
        leaves = [natural(leaf) for leaf in network.leaves_of(host)]
        return block_of(host, network.facts), leaves, natural(host.name)

    ordered = sorted(hosts, key=place)
    leaves = [network.leaves_of(host) for host in ordered]
    sizes = sizes_of_runs(leaves)
    if len(set(sizes[:-1])) > 1 or sizes[-1] > sizes[0] or not all(leaves):
        told = f"the leaves hold {', '.join(map(str, sizes[:12]))} of the hosts"
        unequal = "unequal leaves cannot be planned for: taken as flat"
        notes.unknown.append(f"{network.first.source}: {told}; {unequal}")
        return _assumed(ordered, network, notes)
    rails = rails_of([network.cables[host.title] for host in ordered])
    return _shape(ordered, network, {leaf for mine in leaves for leaf in mine}, sizes[0], rails, notes)


def _like_one(hosts: Sequence[Host], network: _Network, notes: Notes) -> Shape:
    """One host is described and stands for others: the leaves are as full as the fabric shows them."""
    fact = network.first
    leaves = {leaf for host in hosts for leaf in network.leaves_of(host)}
    shown: dict[str, list[PortFact]] = defaultdict(list)
    for port in fact.ports:
        shown[port.host].append(port)
    beside = [ports for ports in shown.values() if {port.leaf for port in ports} == leaves]
    count = f"{fact.source} shows {len(shown)} hosts"
    if len(hosts) == 1 and len(shown) > 1:
        notes.unknown.append(
            f"{count}, one of them is described; give --nodes {len(shown)} if all are like it"
        )
    elif len(hosts) > len(shown):
        others = "the others are taken as on leaves as full"
        notes.unknown.append(f"{count}, --nodes says {len(hosts)}; {others}")
    return _shape(hosts, network, leaves, len(beside), rails_of(beside), notes)


def _of_alike(hosts: Sequence[Host], network: _Network, alike: Alike, notes: Notes) -> Shape:
    """One host is described, and not which of the fabric's hosts it is: all are taken as like it."""
    if not alike.leaves:  # blocks alone
        ratio, why = network.oversubscription or 1.0, f"blocks by {alike.source}"
        stated = "stated by the user (--oversubscription)" if ratio > 1 else "no source tells the uplinks"
        evidence = Evidence("assumed", f"{stated}; {why}")
        return Shape(
            Fabric("leaf-spine", evidence, alike.hosts_per_leaf, ratio, network.span), tuple(hosts), {}
        )
    return _shape(hosts, network, alike.leaves, alike.hosts_per_leaf, rails_of(alike.ports), notes)


def _shape(
    hosts: Sequence[Host],
    network: _Network,
    leaves: set[str],
    nodes_per_leaf: int,
    rails: Mapping[str, int],
    notes: Notes,
) -> Shape:
    ratio, evidence = oversubscription_of(leaves, network.facts, network.oversubscription, notes)
    kind = "rail" if rails else "leaf-spine"
    return Shape(Fabric(kind, evidence, nodes_per_leaf, ratio, network.span), tuple(hosts), rails)
