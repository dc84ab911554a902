"""From facts to one machine: hosts, counts and domains as the sources show them, and a topology.

There is a planner topology only where every needed number is known. Evidence keeps its kind: measured > read
> imported > preset > assumed. What is not known is a sentence in `unknown`; there is no topology without its
numbers, and the sentence names the flag that gives the missing one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.base import BadInput
from planner.topology import LARGEST_GPUS, Node, Topology
from probes.base.facts import FabricFacts, Facts, HostFacts, MeasureFacts
from probes.machine.fabric_of import Shape, fabric_of
from probes.machine.hints import NO_HINTS, Hints, check_hints
from probes.machine.host import Host, Notes
from probes.machine.host_cables import on_rails
from probes.machine.merge_hosts import merge_hosts
from probes.machine.node_of import node_of
from probes.machine.nodes_of_runs import nodes_of_runs
from probes.machine.rank_order import affinity_in_order, domains_in_order, may_span
from probes.machine.stated import MissingFigureError
from probes.measure.apply import apply_measurement
from probes.measure.contradicted import marked

__all__ = ["Hints", "Imported", "assemble"]


@dataclass(frozen=True)
class Imported:
    """What the sources show.

    GPUs are counted over all hosts, in rank order; `affinity` names the nearest NICs of each as its source
    does.
    """

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


def assemble(facts: Sequence[Facts], hints: Hints = NO_HINTS) -> Imported:
    """One machine of all facts.

    BadInput where they show no GPU, where a hint is no number that can be, or names a GPU we do not know.
    """
    check_hints(hints)
    notes = Notes()
    kinds = tuple(dict.fromkeys(fact.kind for fact in facts))
    hosts = _hosts(facts, hints, kinds, notes)
    fabrics = [fact for fact in facts if isinstance(fact, FabricFacts)]
    runs = [fact for fact in facts if isinstance(fact, MeasureFacts)]
    every = _repeated(hosts, hints.nodes or nodes_of_runs(hosts, runs, notes))
    shape = fabric_of(every, fabrics, hints, notes)
    domains = domains_in_order(shape, hints, notes)
    near = affinity_in_order(shape.hosts, hints, notes)
    topology = _topology(shape, hints, notes)
    for measured in runs:
        topology = _measured(topology, measured, hints, notes)
    return Imported(
        gpus=sum(len(host.gpus) for host in shape.hosts),
        nvlink_domains=domains,
        nics=sum(len(host.nics) for host in shape.hosts),
        affinity=near,
        hosts=tuple(host.name for host in shape.hosts),
        kinds=kinds,
        unknown=tuple(dict.fromkeys(notes.unknown)),
        warnings=tuple(dict.fromkeys([*_faults(hosts), *notes.warnings])),
        topology=topology,
    )


def _hosts(facts: Sequence[Facts], hints: Hints, kinds: Sequence[str], notes: Notes) -> list[Host]:
    """The hosts with GPUs; others are said not to be part of the machine."""
    told = [fact for fact in facts if isinstance(fact, HostFacts)]
    merged = merge_hosts(_with_names(told, facts, hints, notes), hints.nodes, notes)
    hosts = [host for host in merged if host.gpus]
    if not hosts:
        none = f"no source shows a GPU ({', '.join(kinds) or 'nothing'})"
        raise BadInput(f"{none}; add the output of 'nvidia-smi topo -m' of one host, or take a preset")
    if len(hosts) < len(merged):
        bare = ", ".join(host.title for host in merged if not host.gpus)
        notes.unknown.append(f"{bare}: no GPUs are shown; not part of the machine")
    return hosts


def _with_names(
    told: Sequence[HostFacts], facts: Sequence[Facts], hints: Hints, notes: Notes
) -> list[HostFacts]:
    """With the model that a benchmark or a cluster's labels name, where nobody else names any."""
    named = any(gpu.name for fact in told for gpu in fact.gpus) or hints.stated_gpu is not None
    elsewhere = [
        (fact.source, name)
        for fact in facts
        if isinstance(fact, (MeasureFacts, FabricFacts))
        for name in fact.gpu_names
    ]
    if named or len({name for _, name in elsewhere}) != 1:
        return list(told)
    source, name = elsewhere[0]
    notes.warnings.append(f"{source} names the GPUs {name}: taken as their model")
    return [replace(fact, gpus=tuple(replace(gpu, name=name) for gpu in fact.gpus)) for fact in told]


def _repeated(hosts: list[Host], nodes: int | None) -> list[Host]:
    """As many hosts as stated, all like the one described."""
    if nodes is None or nodes == len(hosts):
        return hosts
    if len(hosts) > 1:
        titles = ", ".join(host.title for host in hosts[:4])
        shown = f"the sources show {len(hosts)} hosts ({titles})"
        raise BadInput(f"--nodes {nodes}, but {shown}; leave --nodes out")
    (host,) = hosts
    if nodes * len(host.gpus) > LARGEST_GPUS:
        most = f"more than the {LARGEST_GPUS:,} GPUs that we plan for"
        raise BadInput(f"--nodes {nodes} of {len(host.gpus)} GPUs are {most}")
    return [host] + [replace(host, name="")] * (nodes - 1) if host.name else hosts * nodes


def _topology(shape: Shape, hints: Hints, notes: Notes) -> Topology | None:
    """The topology, or None with the missing number in `unknown`."""
    made: dict[int, Node] = {}
    try:
        for host in shape.hosts:
            if id(host) not in made:
                made[id(host)] = on_rails(node_of(host, hints, notes), shape.rails, notes)
        if len(shape.hosts) > 1 and any(may_span(host, shape, hints) for host in shape.hosts):
            unclear = "NVLink may or may not join the hosts; give --nvlink-domain-nodes, 1 for hosts apart"
            notes.unknown.append(f"no topology: {unclear}")
            return None
        nodes = tuple(made[id(host)] for host in shape.hosts)
        sources = dict.fromkeys(source for host in shape.hosts for source in host.sources)
        return Topology(hints.name, nodes, shape.fabric, f"imported from {', '.join(sources)}")
    except (MissingFigureError, BadInput) as refused:
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
        return marked(topology, fact)


def _faults(hosts: Sequence[Host]) -> list[str]:
    gpus = [(f"{host.title}: GPU {gpu.index}", gpu.faults) for host in hosts for gpu in host.gpus]
    nics = [(host.title, nic.faults) for host in hosts for nic in host.nics]
    return [f"{where}: {fault}" for where, faults in (*gpus, *nics) for fault in faults]
