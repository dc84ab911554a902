"""How many consecutive hosts one NVLink domain spans, and what orders its hosts together."""

from collections.abc import Sequence

from probes.base.facts import FabricFacts
from probes.fabric.naming import natural
from probes.machine.gpu_table import RACK_MODELS
from probes.machine.hints import Hints
from probes.machine.host import Host, Notes


def domain_nodes(hosts: Sequence[Host], facts: Sequence[FabricFacts], hints: Hints, notes: Notes) -> int:
    """Consecutive hosts in one NVLink domain.

    By the fabric that the GPUs report, else what a person stated, else 1. Of copies of one host the fabric
    says nothing: then blocks or the person do.
    """
    stated = hints.nvlink_domain_nodes
    keys = [_keys(host) for host in sorted(hosts, key=lambda host: block_of(host, facts))]
    copies = len(hosts) > 1 and hosts[0].gpus is hosts[-1].gpus
    if not copies and any(len(mine) == 1 for mine in keys):
        sizes = sizes_of_runs([tuple(sorted(mine)) for mine in keys])
        if len(set(sizes)) == 1 and all(len(mine) == 1 for mine in keys):
            return sizes[0]
        told = ", ".join(map(str, sizes[:12]))
        uneven = f"the NVLink domains hold {told} of the hosts, or some hosts report none"
        notes.unknown.append(f"{uneven}; unequal ones cannot be planned for: taken host by host")
        return 1
    if stated is not None or not facts or not all(_is_of_rack(host, hints) for host in hosts):
        return stated or 1
    blocks = [block_of(host, facts) for host in hosts] if not copies else []
    sizes = sizes_of_runs([(block,) for block in sorted(blocks, key=natural)]) if all(blocks) else []
    if copies:
        sizes = [len(members) for fact in facts for members in fact.blocks.values()]
    if not sizes or len(set(sizes)) > 1:
        return 1
    span = min(sizes[0], len(hosts))
    taken = f"the blocks of {sizes[0]} hosts in {facts[0].source} are taken as NVLink domains"
    if len(hosts) % span:
        notes.unknown.append(f"{taken}; they do not divide {len(hosts)} hosts: taken host by host")
        return 1
    notes.warnings.append(f"{taken}, as their GPUs are of racks with one")
    return span


def block_of(host: Host, facts: Sequence[FabricFacts]) -> str:
    """What orders hosts of one NVLink domain together."""
    blocks = [block for fact in facts for block in fact.blocks.items()]
    named = [name for name, members in blocks if host.name and host.name in members]
    return min(_keys(host) or named, default="")


def _keys(host: Host) -> set[str]:
    return {gpu.fabric for gpu in host.gpus if gpu.fabric}


def _is_of_rack(host: Host, hints: Hints) -> bool:
    models = [hints.links_of(gpu.name) or hints.stated_gpu for gpu in host.gpus]
    return all(links is not None and links.model in RACK_MODELS for links in models)


def sizes_of_runs(marks: Sequence[tuple[str, ...]]) -> list[int]:
    """How many consecutive hosts have the same marks: leaves, or NVLink domains."""
    sizes: list[int] = []
    before = None
    for mine in marks:
        if mine == before:
            sizes[-1] += 1
        else:
            sizes.append(1)
        before = mine
    return sizes
