"""From facts to one machine: hosts merged and ordered, counts and domains as the sources show them, and a planner topology where every needed number is known.

Evidence keeps its kind: measured > read > imported > preset > assumed. What is not known is a sentence in `unknown`; there is no topology without its
numbers, and the sentence names the flag that gives the missing one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.base import BadInput
from planner.topology import LARGEST_GPUS, Node, Topology
from probes.base.facts import FabricFacts, Facts, HostFacts, MeasureFacts
from probes.machine.fabric_of import Shape, fabric_of, on_rails
from probes.machine.gpu_names import RACK_MODELS, links_of_gpu, named_gpu
from probes.machine.merge_hosts import Host, Notes, merge_hosts
from probes.machine.nic_use import affinity
from probes.machine.node_of import MissingFigureError, Stated, known_links, node_of
from probes.measure.apply import apply_measurement


@dataclass(frozen=True)
class Hints:
    """What a person adds to the sources. Values that a source tells win over hints, with a warning."""

    gpu: str | None = None  # 'H100-SXM', or the driver's name
    nic_bytes_per_s: float | None = None  # of each NIC whose rate no source tells, one direction
    nodes: int | None = None  # hosts like the one described
    oversubscription: float | None = None
    nvlink_domain_nodes: int | None = None  # hosts in one NVLink domain: 18 in an NVL72 rack
    cpu_rates: bool = False  # take rates measured between CPU processes for those of the machine
    name: str = "imported"


@dataclass(frozen=True)
class Imported:
    """What the sources show. GPUs are counted over all hosts, in rank order; `affinity` names the nearest NICs of each as its source does."""

    gpus: int
    nvlink_domains: tuple[tuple[int, ...], ...]
    nics: int
    affinity: dict[int, tuple[str, ...]]
    hosts: tuple[str, ...]
    kinds: tuple[str, ...]
    unknown: tuple[str, ...]
    warnings: tuple[str, ...]
    topology: Topology | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; GPU numbers are text where they are keys."""
        return {
            "gpus": self.gpus,
            "nvlink_domains": [list(domain) for domain in self.nvlink_domains],
            "nics": self.nics,
            "affinity": {str(gpu): list(names) for gpu, names in self.affinity.items()},
            "unknown": list(self.unknown),
            "warnings": list(self.warnings),
            "hosts": list(self.hosts),
            "kinds": list(self.kinds),
            "topology": None if self.topology is None else self.topology.to_dict(),
        }


def assemble(facts: Sequence[Facts], hints: Hints = Hints()) -> Imported:
    """One machine of all facts. BadInput where they show no GPU, where a hint is no number that can be, or names a GPU we do not know."""
    _check(hints)
    notes = Notes()
    merged = merge_hosts([fact for fact in facts if isinstance(fact, HostFacts)], hints.nodes, notes)
    hosts = [host for host in merged if host.gpus]
    if not hosts:
        kinds = ", ".join(dict.fromkeys(fact.kind for fact in facts)) or "nothing"
        raise BadInput(
            f"no source shows a GPU ({kinds}); add the output of 'nvidia-smi topo -m' of one host, or take a preset"
        )
    if len(hosts) < len(merged):
        notes.unknown.append(
            f"{', '.join(host.title for host in merged if not host.gpus)}: no GPUs are shown; not part of the machine"
        )
    fabrics = [fact for fact in facts if isinstance(fact, FabricFacts)]
    shape = fabric_of(
        _repeated(hosts, hints.nodes), fabrics, hints.oversubscription, hints.nvlink_domain_nodes, notes
    )
    links = _domains(shape, hints, notes)
    near = _affinity(shape.hosts, notes)
    topology = _topology(shape, hints, notes)
    for measured in (fact for fact in facts if isinstance(fact, MeasureFacts)):
        topology = _measured(topology, measured, hints, notes)
    nics = sum(len(host.nics) for host in shape.hosts)
    names = tuple(host.name for host in shape.hosts)
    kinds_told = tuple(dict.fromkeys(fact.kind for fact in facts))
    unknown, warnings = (
        tuple(dict.fromkeys(sentences)) for sentences in (notes.unknown, (*_faults(hosts), *notes.warnings))
    )
    gpus = sum(len(host.gpus) for host in shape.hosts)
    return Imported(gpus, links, nics, near, names, kinds_told, unknown, warnings, topology)


def _check(hints: Hints) -> None:
    if hints.gpu is not None:
        named_gpu(hints.gpu)
    for flag, count in (("--nodes", hints.nodes), ("--nvlink-domain-nodes", hints.nvlink_domain_nodes)):
        if count is not None and not 1 <= count <= LARGEST_GPUS:
            raise BadInput(f"{flag} {count}: give a number from 1 to {LARGEST_GPUS:,}")
    if hints.nic_bytes_per_s is not None and not 0 < hints.nic_bytes_per_s < 1e15:
        raise BadInput(f"--nic {hints.nic_bytes_per_s:g} bytes/s: give the rate of one NIC, like 400G")
    if hints.oversubscription is not None and not 1 <= hints.oversubscription < 1e6:
        raise BadInput(
            f"--oversubscription {hints.oversubscription:g}: is down / up bandwidth of a leaf switch and at least 1"
        )


def _repeated(hosts: list[Host], nodes: int | None) -> list[Host]:
    """As many hosts as stated, all like the one described."""
    if nodes is None or nodes == len(hosts):
        return hosts
    if len(hosts) > 1:
        raise BadInput(
            f"--nodes {nodes}, but the sources show {len(hosts)} hosts ({', '.join(host.title for host in hosts[:4])}); leave --nodes out"
        )
    if nodes * len(hosts[0].gpus) > LARGEST_GPUS:
        raise BadInput(
            f"--nodes {nodes} of {len(hosts[0].gpus)} GPUs are more than the {LARGEST_GPUS:,} GPUs that we plan for"
        )
    return [hosts[0]] + [replace(hosts[0], name="")] * (nodes - 1) if hosts[0].name else hosts * nodes


def _domains(shape: Shape, hints: Hints, notes: Notes) -> tuple[tuple[int, ...], ...]:
    """NVLink domains in rank order. A host whose links are not known has each GPU alone here, and is named in `unknown`."""
    domains: list[tuple[int, ...]] = []
    start = 0
    for number, host in enumerate(shape.hosts):
        links = known_links(host, hints.gpu)
        mine = links.domains if links else tuple((gpu,) for gpu in range(len(host.gpus)))
        if links is None and len(host.gpus) > 1:
            notes.unknown.append(
                f"{host.title}: which GPUs NVLink joins is in no source; each is listed alone: add 'nvidia-smi topo -m'"
            )
        if links is not None and links.kind == "switch" and _may_span(host, shape, hints):
            notes.unknown.append(
                f"{host.title}: whether its NVLink domain spans other hosts is not known; give --nvlink-domain-nodes (18 in an NVL72 rack)"
            )
        notes.unknown += [f"{host.title}: {sentence}" for sentence in links.ambiguous] if links else []
        moved = [tuple(start + gpu for gpu in group) for group in mine]
        span = shape.fabric.nvlink_domain_nodes
        if number % span and len(moved) == 1:
            domains[-1] += moved[0]
        else:
            domains += moved
        start += len(host.gpus)
    return tuple(domains)


def _may_span(host: Host, shape: Shape, hints: Hints) -> bool:
    """A tray of an NVL72 rack looks like half an HGX board: four GPUs with all 18 links to a switch."""
    if (
        shape.fabric.nvlink_domain_nodes > 1
        or hints.nvlink_domain_nodes
        or any(gpu.fabric for gpu in host.gpus)
    ):
        return False
    models = {_model_name(host, gpu, hints) for gpu in range(len(host.gpus))}
    all_links = {18} >= {gpu.nvlinks for gpu in host.gpus}
    return bool(models & set(RACK_MODELS)) or (None in models and all_links and len(host.gpus) <= 4)


def _model_name(host: Host, gpu: int, hints: Hints) -> str | None:
    links = links_of_gpu(host.gpus[gpu].name) or (named_gpu(hints.gpu) if hints.gpu else None)
    return links.model if links else None


def _affinity(hosts: Sequence[Host], notes: Notes) -> dict[int, tuple[str, ...]]:
    named: dict[int, tuple[str, ...]] = {}
    for host in hosts:
        for near in affinity(host).values():
            named[len(named)] = tuple(host.nics[nic].name for nic in near or ())
        hidden = [gpu for gpu, near in affinity(host).items() if near is None]
        if hidden:
            notes.unknown.append(
                f"{host.title}: the nearest NICs of GPU {', '.join(map(str, hidden))} are not known"
            )
    return named


def _topology(shape: Shape, hints: Hints, notes: Notes) -> Topology | None:
    """The topology, or None with the missing number in `unknown`."""
    stated = Stated(hints.gpu, hints.nic_bytes_per_s)
    made: dict[int, Node] = {}
    try:
        for host in shape.hosts:
            if id(host) not in made:
                made[id(host)] = on_rails(node_of(host, stated, notes), shape.rails, notes)
        nodes = tuple(made[id(host)] for host in shape.hosts)
        if (
            len(nodes) > 1
            and shape.fabric.nvlink_domain_nodes == 1
            and any(_may_span(host, shape, hints) for host in shape.hosts)
        ):
            notes.unknown.append(
                "no topology: NVLink may or may not join the hosts; give --nvlink-domain-nodes, 1 for hosts apart"
            )
            return None
        sources = dict.fromkeys(source for host in shape.hosts for source in host.sources)
        return Topology(hints.name, nodes, shape.fabric, f"imported from {', '.join(sources)}")
    except MissingFigureError as missing:
        notes.unknown.append(f"no topology: {missing}")
    except BadInput as refused:
        notes.unknown.append(f"no topology: {refused}")
    return None


def _measured(topology: Topology | None, fact: MeasureFacts, hints: Hints, notes: Notes) -> Topology | None:
    notes.unknown += [f"{fact.source}: {sentence}" for sentence in fact.unknown]
    notes.warnings += [f"{fact.source}: {sentence}" for sentence in fact.warnings]
    if topology is None:
        notes.warnings.append(f"{fact.source}: not used, there is no topology whose rates it could replace")
        return None
    if fact.kind == "torch-gloo" and not hints.cpu_rates:
        why = "it was measured between CPU processes, which GPUs do not go through"
        notes.warnings.append(f"{fact.source}: not used, {why}; --cpu-rates takes it all the same")
        return topology
    try:
        return apply_measurement(topology, fact)
    except BadInput as refused:
        notes.warnings.append(f"not used, the rates of the other sources stay: {refused}")
        return topology


def _faults(hosts: Sequence[Host]) -> list[str]:
    gpus = [
        f"{host.title}: GPU {gpu.index}: {fault}"
        for host in hosts
        for gpu in host.gpus
        for fault in gpu.faults
    ]
    return gpus + [f"{host.title}: {fault}" for host in hosts for nic in host.nics for fault in nic.faults]
