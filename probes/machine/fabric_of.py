"""The network between hosts to the planner's `Fabric`: leaves or rails, oversubscription, NVLink domains over hosts, and the order of the hosts.

The planner counts: so many consecutive nodes share a leaf. So hosts are put in order leaf by leaf, and a fabric whose leaves are not equally full (but for
the last) is said to be one that cannot be described, not bent to fit.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.base import Evidence
from planner.topology import Fabric, Node
from probes.base.facts import FabricFacts, PortFact
from probes.fabric.naming import natural
from probes.machine.gpu_names import RACK_MODELS, links_of_gpu
from probes.machine.merge_hosts import Host, Notes

Cables = dict[str, list[PortFact]]  # by the title of a host


@dataclass(frozen=True)
class Shape:
    """A fabric and its hosts in the order that it counts in; `rails` is the rail of each NIC, by device name, where leaves are rails."""

    fabric: Fabric
    hosts: tuple[Host, ...]
    rails: Mapping[str, int]


def fabric_of(
    hosts: Sequence[Host],
    facts: Sequence[FabricFacts],
    oversubscription: float | None,
    domain_nodes: int | None,
    notes: Notes,
) -> Shape:
    """The fabric of the hosts (copies of one host stand for others like it). What no source tells is assumed, and said."""
    for fact in facts:
        notes.unknown += [f"{fact.source}: {sentence}" for sentence in fact.unknown]
        notes.warnings += [f"{fact.source}: {sentence}" for sentence in fact.warnings]
    span = _domain_nodes(hosts, facts, domain_nodes, notes)
    cables = _cables(hosts, facts)
    leaves = {
        title: tuple(sorted({port.leaf for port in mine}, key=natural)) for title, mine in cables.items()
    }
    if not any(leaves.values()):
        if any(fact.ports for fact in facts):
            listed = ", ".join(dict.fromkeys(host.title for host in hosts[:4]))
            notes.unknown.append(
                f"{facts[0].source} shows no cable of {listed} by name or GUID; it is not used, the network is taken as flat"
            )
        return Shape(_assumed(len(hosts), oversubscription, span, notes), tuple(hosts), {})
    fact = next(fact for fact in facts if fact.ports)
    if len({id(host) for host in hosts}) == 1 or sum(bool(mine) for mine in leaves.values()) == 1 < len(
        hosts
    ):
        return _like_one(hosts, cables, facts, oversubscription, span, notes)
    ordered = sorted(
        hosts,
        key=lambda host: (
            _block(host, facts),
            [natural(leaf) for leaf in leaves[host.title]],
            natural(host.name),
        ),
    )
    sizes = _sizes([leaves[host.title] for host in ordered])
    if (
        len(set(sizes[:-1])) > 1
        or (len(sizes) > 1 and sizes[-1] > sizes[0])
        or any(not leaves[host.title] for host in ordered)
    ):
        notes.unknown.append(
            f"{fact.source}: the leaves hold {', '.join(map(str, sizes[:12]))} of the hosts; unequal leaves cannot be planned for: taken as flat"
        )
        return Shape(_assumed(len(hosts), oversubscription, span, notes), tuple(ordered), {})
    rails = _rails([cables[host.title] for host in ordered])
    ratio, evidence = _oversubscription(
        {leaf for host in ordered for leaf in leaves[host.title]}, facts, oversubscription, notes
    )
    kind = "rail" if rails else "leaf-spine"
    return Shape(Fabric(kind, evidence, sizes[0], ratio, span), tuple(ordered), rails)


def on_rails(node: Node, rails: Mapping[str, int], notes: Notes) -> Node:
    """The node with its NICs on the rails of the fabric; NICs that serve the same GPUs are on the rail of the first of them."""
    if not rails or not node.nics:
        return node
    nics = list(node.nics)
    for pool in node.nic_pools:
        mine = [rails.get(nics[nic].name) for nic in pool]
        if None in mine:
            stranger = nics[pool[mine.index(None)]].name
            notes.warnings.append(
                f"NIC {stranger} has no cable of that name in the fabric; its rail is taken from its place in the host"
            )
        elif len(set(mine)) > 1:
            names = ", ".join(nics[nic].name for nic in pool)
            notes.warnings.append(
                f"{names} serve the same GPUs from different rails; all are taken as on the first one's"
            )
        rail = next((rail for rail in mine if rail is not None), nics[pool[0]].rail)
        for nic in pool:
            nics[nic] = replace(nics[nic], rail=rail)
    return replace(node, nics=tuple(nics))


def _assumed(count: int, oversubscription: float | None, span: int, notes: Notes) -> Fabric:
    if oversubscription is not None and oversubscription > 1:
        evidence = Evidence(
            "assumed", "stated by the user (--oversubscription): every host behind a leaf of its own"
        )
        return Fabric("leaf-spine", evidence, 1, oversubscription, span)
    if count > 1:
        notes.unknown.append(
            "the switches between the hosts are in no source; the network is taken as flat, without a bottleneck: add 'ibnetdiscover'"
        )
    return Fabric(
        "none",
        Evidence("assumed", "no source tells the switches between hosts; taken as one flat network"),
        nvlink_domain_nodes=span,
    )


def _cables(hosts: Sequence[Host], facts: Sequence[FabricFacts]) -> Cables:
    """The cables of each host, by name (with or without its domain) or by the GUIDs of its NICs."""
    of_name: dict[str, list[PortFact]] = defaultdict(list)
    of_guid: dict[str, list[PortFact]] = defaultdict(list)
    for port in (port for fact in facts for port in fact.ports):
        of_name[port.host.split(".")[0]].append(port)
        if port.guid:
            of_guid[port.guid].append(port)
    cables: Cables = {}
    for host in hosts:
        guids = sorted({nic.guid.removeprefix("0x") for nic in host.nics if nic.guid})
        mine = [
            *(of_name[host.name.split(".")[0]] if host.name else []),
            *(port for guid in guids for port in of_guid[guid]),
        ]
        cables[host.title] = list(dict.fromkeys(mine))
    return cables


def _sizes(leaves: Sequence[tuple[str, ...]]) -> list[int]:
    """How many consecutive hosts have the same leaves."""
    sizes: list[int] = []
    before = None
    for mine in leaves:
        if mine == before:
            sizes[-1] += 1
        else:
            sizes.append(1)
        before = mine
    return sizes


def _rails(ports_of_hosts: Sequence[Sequence[PortFact]]) -> dict[str, int]:
    """NIC -> rail where the NICs of every host are on leaves of their own, and every leaf has the same NIC of its hosts; empty otherwise."""
    owners: dict[str, set[str]] = defaultdict(set)
    for ports in ports_of_hosts:
        if (
            len(ports) < 2
            or len({port.leaf for port in ports}) < len(ports)
            or any(port.nic is None for port in ports)
        ):
            return {}
        for port in ports:
            owners[port.leaf].add(str(port.nic))
    nics = sorted({nic for mine in owners.values() for nic in mine}, key=natural)
    return (
        {nic: rail for rail, nic in enumerate(nics)}
        if all(len(mine) == 1 for mine in owners.values())
        else {}
    )


def _like_one(
    hosts: Sequence[Host],
    cables: Cables,
    facts: Sequence[FabricFacts],
    oversubscription: float | None,
    span: int,
    notes: Notes,
) -> Shape:
    """One host is described and stands for others: the leaves are as full as the fabric shows them."""
    fact = next(fact for fact in facts if fact.ports)
    leaves = {port.leaf for host in hosts for port in cables[host.title]}
    shown: dict[str, list[PortFact]] = defaultdict(list)
    for port in fact.ports:
        shown[port.host].append(port)
    beside = [ports for ports in shown.values() if {port.leaf for port in ports} == leaves]
    if len(hosts) == 1 and len(shown) > 1:
        notes.unknown.append(
            f"{fact.source} shows {len(shown)} hosts, one of them is described; give --nodes {len(shown)} if all are like it"
        )
    elif len(hosts) > len(shown):
        notes.unknown.append(
            f"{fact.source} shows {len(shown)} hosts, --nodes says {len(hosts)}; the others are taken as on leaves as full"
        )
    rails = _rails(beside)
    ratio, evidence = _oversubscription(leaves, facts, oversubscription, notes)
    return Shape(
        Fabric("rail" if rails else "leaf-spine", evidence, len(beside), ratio, span), tuple(hosts), rails
    )


def _oversubscription(
    leaves: set[str], facts: Sequence[FabricFacts], stated: float | None, notes: Notes
) -> tuple[float, Evidence]:
    """The worst leaf's rate to hosts / rate to spines. Where rates are not told: cables of the same kind, else what a person stated, else 1, assumed."""
    found: dict[str, float] = {}
    for fact in facts:
        for leaf in sorted(leaves):
            ports = [port for port in fact.ports if port.leaf == leaf]
            up = [pair for pair in fact.uplinks if pair[0] == leaf]
            if not ports or not up:
                continue
            down_rates = [port.rate_bytes_per_s for port in ports]
            if None not in down_rates and all(pair in fact.uplink_bytes_per_s for pair in up):
                found[leaf] = sum(rate or 0.0 for rate in down_rates) / sum(
                    fact.uplink_bytes_per_s[pair] for pair in up
                )
    source = next((fact for fact in facts if fact.ports), facts[0])
    if found:
        worst = min(found, key=lambda leaf: (-found[leaf], natural(leaf)))
        if max(found.values()) > 1.01 * min(found.values()):
            notes.warnings.append(
                f"{source.source}: leaves differ, {min(found.values()):.2f} to {found[worst]:.2f} down / up; the worst, {worst}, counts for all"
            )
        if stated is not None and abs(stated - max(1.0, found[worst])) > 0.02 * stated:
            notes.warnings.append(
                f"oversubscription is {found[worst]:.2f} by {source.source}, --oversubscription says {stated:g}; the first is used"
            )
        return max(1.0, found[worst]), Evidence(
            source.evidence, f"{source.source}: rates of the cables of {worst}"
        )
    if len(leaves) == 1:
        return 1.0, Evidence(source.evidence, f"{source.source}: one leaf for all hosts")
    if stated is not None:
        return max(1.0, stated), Evidence(
            "assumed", f"stated by the user (--oversubscription); leaves by {source.source}"
        )
    notes.unknown.append(
        f"{source.source} does not tell the rates of the leaves' uplinks; taken as not oversubscribed: give --oversubscription"
    )
    return 1.0, Evidence("assumed", f"no source tells the uplinks; leaves by {source.source}")


def _keys(host: Host) -> set[str]:
    return {gpu.fabric for gpu in host.gpus if gpu.fabric}


def _block(host: Host, facts: Sequence[FabricFacts]) -> str:
    """What orders hosts of one NVLink domain together."""
    named = [
        name for fact in facts for name, members in fact.blocks.items() if host.name and host.name in members
    ]
    return min(_keys(host) or named, default="")


def _domain_nodes(
    hosts: Sequence[Host], facts: Sequence[FabricFacts], stated: int | None, notes: Notes
) -> int:
    """Consecutive hosts in one NVLink domain: by the fabric that the GPUs report, else what a person stated, else 1."""
    keys = [_keys(host) for host in sorted(hosts, key=lambda host: _block(host, facts))]
    if any(len(mine) == 1 for mine in keys):
        sizes = _sizes([tuple(sorted(mine)) for mine in keys])
        if len(set(sizes)) == 1 and all(len(mine) == 1 for mine in keys):
            return sizes[0]
        told = ", ".join(map(str, sizes[:12]))
        notes.unknown.append(
            f"the NVLink domains hold {told} of the hosts, or some hosts report none; unequal ones cannot be planned for: taken host by host"
        )
        return 1
    blocks = [_block(host, facts) for host in hosts]
    sizes = _sizes([(block,) for block in sorted(blocks, key=natural)])
    racks = all(
        (links := links_of_gpu(gpu.name)) is not None and links.model in RACK_MODELS
        for host in hosts
        for gpu in host.gpus
    )
    if stated is None and racks and all(blocks) and len(set(sizes)) == 1:
        notes.warnings.append(
            f"the blocks of {sizes[0]} hosts in {facts[0].source} are taken as NVLink domains, as their GPUs are of racks with one"
        )
        return sizes[0]
    return stated or 1
