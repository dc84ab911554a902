"""One `Host` of all facts of the same host.

A value that two sources tell differently is said with both; the better evidence counts.
"""

from collections.abc import Sequence

from planner.base import EVIDENCE_KINDS
from probes.base.facts import HostFacts
from probes.machine.host import Host, Notes
from probes.machine.ledger import Ledger
from probes.machine.merge_gpus import merge_gpus
from probes.machine.merge_links import merge_links
from probes.machine.merge_nics import merge_nics
from probes.machine.same_host import name_of, same_host


def merge_hosts(facts: Sequence[HostFacts], nodes: int | None, notes: Notes) -> tuple[Host, ...]:
    """The hosts that the facts describe: named ones in the order given, then unnamed ones.

    `nodes` is how many there are, where a person said it.
    """
    hosts = tuple(_merged(group, notes) for group in same_host(facts, nodes, notes))
    owner: dict[str, int] = {}
    for number, host in enumerate(hosts):
        uuids = (gpu.uuid for gpu in host.gpus if gpu.uuid)
        twice = next((uuid for uuid in uuids if owner.setdefault(uuid, number) != number), None)
        if twice:
            both = f"the GPU {twice} is on {hosts[owner[twice]].title} and on {host.title}"
            notes.unknown.append(f"{both}; it is counted twice: give each host once")
    return hosts


def _merged(group: list[HostFacts], notes: Notes) -> Host:
    facts = sorted(group, key=lambda fact: EVIDENCE_KINDS.index(fact.evidence))  # stable: of equals the first
    name = next((name_of(fact) for fact in facts if name_of(fact)), "")
    ledger = Ledger(f"host {name}: " if name else "", notes.warnings)
    gpus, gpu_places = merge_gpus(facts, ledger)
    nics, nic_places = merge_nics(facts, ledger)
    gpu_paths, nic_paths, links = merge_links(facts, gpu_places, nic_places, len(gpus), ledger)
    for fact in facts:
        where = f"{ledger.where}{fact.source}: "
        notes.unknown += [where + sentence for sentence in fact.unknown]
        notes.warnings += [where + sentence for sentence in fact.warnings]
    sources = tuple(dict.fromkeys(fact.source for fact in facts))
    kinds = tuple(dict.fromkeys(fact.kind for fact in facts))
    return Host(name, sources, kinds, gpus, nics, gpu_paths, nic_paths, links, ledger.evidence)
