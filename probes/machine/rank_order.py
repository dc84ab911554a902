"""NVLink domains and nearest NICs of all GPUs, counted over the hosts in rank order."""

from collections.abc import Sequence

from probes.machine.fabric_of import Shape
from probes.machine.gpu_table import RACK_MODELS
from probes.machine.hints import Hints
from probes.machine.host import Host, Notes
from probes.machine.nic_limits import given_nics
from probes.machine.nic_use import affinity
from probes.machine.nvlink_of import known_links


def domains_in_order(shape: Shape, hints: Hints, notes: Notes) -> tuple[tuple[int, ...], ...]:
    """NVLink domains of all hosts.

    A host whose links are not known has each GPU alone here, and is named in `unknown`.
    """
    domains: list[tuple[int, ...]] = []
    start = 0
    for number, host in enumerate(shape.hosts):
        links = known_links(host, hints)
        mine = links.domains if links else tuple((gpu,) for gpu in range(len(host.gpus)))
        if links is None and len(host.gpus) > 1:
            untold = f"{host.title}: which GPUs NVLink joins is in no source"
            notes.unknown.append(f"{untold}; each is listed alone: add 'nvidia-smi topo -m'")
        if links is not None and links.kind == "switch" and may_span(host, shape, hints):
            untold = f"{host.title}: whether its NVLink domain spans other hosts is not known"
            notes.unknown.append(f"{untold}; give --nvlink-domain-nodes (18 in an NVL72 rack)")
        notes.unknown += [f"{host.title}: {sentence}" for sentence in links.ambiguous] if links else []
        moved = [tuple(start + gpu for gpu in group) for group in mine]
        if number % shape.fabric.nvlink_domain_nodes and len(moved) == 1:
            domains[-1] += moved[0]
        else:
            domains += moved
        start += len(host.gpus)
    return tuple(domains)


def may_span(host: Host, shape: Shape, hints: Hints) -> bool:
    """A tray of an NVL72 rack looks like half an HGX board: four GPUs with all 18 links to a switch."""
    told = shape.fabric.nvlink_domain_nodes > 1 or hints.nvlink_domain_nodes
    copies = len(shape.hosts) > 1 and shape.hosts[0].gpus is shape.hosts[-1].gpus  # of one host described
    if told or (not copies and any(gpu.fabric for gpu in host.gpus)):
        return False
    models = {_model_name(gpu.name, hints) for gpu in host.gpus}
    all_links = {18} >= {gpu.nvlinks for gpu in host.gpus}
    return bool(models & set(RACK_MODELS)) or (None in models and all_links and len(host.gpus) <= 4)


def _model_name(product: str | None, hints: Hints) -> str | None:
    links = hints.links_of(product) or hints.stated_gpu
    return links.model if links else None


def affinity_in_order(hosts: Sequence[Host], hints: Hints, notes: Notes) -> dict[int, tuple[str, ...]]:
    """The names of the nearest NICs of each GPU, or of those that a person gave it."""
    named: dict[int, tuple[str, ...]] = {}
    for host in hosts:
        nearest = affinity(host) | given_nics(host, hints.nic_of)
        for near in nearest.values():
            named[len(named)] = tuple(host.nics[nic].name for nic in near or ())
        hidden = [str(gpu) for gpu, near in nearest.items() if near is None]
        if hidden:
            notes.unknown.append(f"{host.title}: the nearest NICs of GPU {', '.join(hidden)} are not known")
    return named
