"""How many consecutive hosts one NVLink domain spans, and what orders its hosts together."""

from collections.abc import Sequence

from probes.base.facts import FabricFacts
from probes.fabric.naming import natural
from probes.machine.gpu_names import RACK_MODELS, links_of_gpu
from probes.machine.host import Host, Notes


def domain_nodes(
    hosts: Sequence[Host], facts: Sequence[FabricFacts], stated: int | None, notes: Notes
) -> int:
    """Consecutive hosts in one NVLink domain.

    By the fabric that the GPUs report, else what a person stated, else 1.
    """
    keys = [_keys(host) for host in sorted(hosts, key=lambda host: block_of(host, facts))]
    if any(len(mine) == 1 for mine in keys):
        sizes = sizes_of_runs([tuple(sorted(mine)) for mine in keys])
        if len(set(sizes)) == 1 and all(len(mine) == 1 for mine in keys):
            return sizes[0]
        told = ", ".join(map(str, sizes[:12]))
        uneven = f"the NVLink domains hold {told} of the hosts, or some hosts report none"
        notes.unknown.append(f"{uneven}; unequal ones cannot be planned for: taken host by host")
        return 1
    blocks = [block_of(host, facts) for host in hosts]
    sizes = sizes_of_runs([(block,) for block in sorted(blocks, key=natural)])
    if stated is None and all(map(_is_of_rack, hosts)) and all(blocks) and len(set(sizes)) == 1:
        taken = f"the blocks of {sizes[0]} hosts in {facts[0].source} are taken as NVLink domains"
        notes.warnings.append(f"{taken}, as their GPUs are of racks with one")
        return sizes[0]
    return stated or 1


def block_of(host: Host, facts: Sequence[FabricFacts]) -> str:
    """What orders hosts of one NVLink domain together."""
    blocks = [block for fact in facts for block in fact.blocks.items()]
    named = [name for name, members in blocks if host.name and host.name in members]
    return min(_keys(host) or named, default="")


def _keys(host: Host) -> set[str]:
    return {gpu.fabric for gpu in host.gpus if gpu.fabric}


def _is_of_rack(host: Host) -> bool:
    models = [links_of_gpu(gpu.name) for gpu in host.gpus]
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
