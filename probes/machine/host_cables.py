"""The cables of each host into the fabric, and the rails that they show."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.topology import Node
from probes.base.facts import FabricFacts, PortFact
from probes.fabric.naming import natural
from probes.machine.host import Host, Notes

Cables = dict[str, list[PortFact]]  # by the title of a host


def cables_of(hosts: Sequence[Host], facts: Sequence[FabricFacts]) -> Cables:
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
        mine = list(of_name[host.name.split(".")[0]]) if host.name else []
        mine += [port for guid in guids for port in of_guid[guid]]
        cables[host.title] = list(dict.fromkeys(mine))
    return cables


def rails_of(ports_of_hosts: Sequence[Sequence[PortFact]]) -> dict[str, int]:
    """NIC -> rail where the NICs of every host are on leaves of their own.

    Every leaf must have the same NIC of its hosts; empty otherwise.
    """
    owners: dict[str, set[str]] = defaultdict(set)
    for ports in ports_of_hosts:
        apart = len(ports) >= 2 and len({port.leaf for port in ports}) == len(ports)
        if not apart or any(port.nic is None for port in ports):
            return {}
        for port in ports:
            owners[port.leaf].add(str(port.nic))
    if any(len(mine) != 1 for mine in owners.values()):
        return {}
    nics = sorted({nic for mine in owners.values() for nic in mine}, key=natural)
    return {nic: rail for rail, nic in enumerate(nics)}


def on_rails(node: Node, rails: Mapping[str, int], notes: Notes) -> Node:
    """The node with its NICs on the rails of the fabric.

    NICs that serve the same GPUs are on the rail of the first of them.
    """
    if not rails or not node.nics:
        return node
    nics = list(node.nics)
    for pool in node.nic_pools:
        mine = [rails.get(nics[nic].name) for nic in pool]
        if None in mine:
            stranger = nics[pool[mine.index(None)]].name
            missing = f"NIC {stranger} has no cable of that name in the fabric"
            notes.warnings.append(f"{missing}; its rail is taken from its place in the host")
        elif len(set(mine)) > 1:
            names = ", ".join(nics[nic].name for nic in pool)
            differ = f"{names} serve the same GPUs from different rails"
            notes.warnings.append(f"{differ}; all are taken as on the first one's")
        rail = next((rail for rail in mine if rail is not None), nics[pool[0]].rail)
        for nic in pool:
            nics[nic] = replace(nics[nic], rail=rail)
    return replace(node, nics=tuple(nics))
