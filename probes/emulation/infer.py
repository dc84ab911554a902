"""Rates of links, and the switches between hosts, from what patterns of traffic took. Pure.

A link carries at least what it carried in any pattern, and exactly that in those where nothing else was
slower. The switches are the simplest ones under which every pattern takes what it took.

Shapes: G ranks, R resources, P patterns.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.base import Evidence, Rate
from planner.topology import Fabric, Topology, with_rates
from probes.emulation.observe import Observation
from probes.emulation.patterns import OF_SWITCHES, divisors
from probes.measure.measured_node import measured_node

Floats = npt.NDArray[np.float64]
FULL = 0.95  # of the slowest link's seconds: what is loaded so far is a bottleneck too
NOISE = 0.85  # of the most that a link ever carried, which may be an outlier: still its rate
SIMPLER = 0.1  # by which the worst pattern has to be predicted better for switches to be believed
OVERSUBSCRIBED = 1.05  # less is noise
_BACK = {"out": "in", "in": "out", "up": "down", "down": "up"}


@dataclass(frozen=True)
class Inferred:
    """The measured cluster, and how far patterns are from what it predicts of them, at most.

    Of those patterns that show switches, where there are such.
    """

    topology: Topology
    error: float


def infer(
    seen: Topology, patterns: Mapping[str, Floats], observations: Sequence[Observation], evidence: Evidence
) -> Inferred:
    """The cluster of which `seen` is what was known before (`probes.emulation.unknown`)."""
    seconds_P = np.array([one.seconds_per_byte for one in observations])
    bytes_PGG = [patterns[one.pattern] for one in observations]
    telling = [at for at, one in enumerate(observations) if one.pattern.startswith(OF_SWITCHES)]
    telling = telling or list(range(len(observations)))
    best: Inferred | None = None
    for fabric in _fabrics(seen, evidence):
        measured = _measured(replace(seen, fabric=fabric), bytes_PGG, seconds_P, evidence)
        found = Inferred(measured, _error(measured, [bytes_PGG[at] for at in telling], seconds_P[telling]))
        if best is None or found.error < best.error - SIMPLER:
            best = found
    assert best is not None  # a flat network is always among them
    return best


def _fabrics(seen: Topology, evidence: Evidence) -> Iterable[Fabric]:
    """From simple to less so: no switch that matters, leaves, rails, leaves under spines."""
    flat = replace(seen.fabric, evidence=evidence)
    yield flat
    hosts = seen.node_count
    if not any(node.nics for node in seen.nodes):
        return
    for size in divisors(hosts)[:-1]:
        yield replace(flat, kind="leaf-spine", nodes_per_leaf=size)
    for size in divisors(hosts):
        if max(len(node.nic_pools) for node in seen.nodes) > 1:
            yield replace(flat, kind="rail", nodes_per_leaf=size)
    for pod in divisors(hosts)[1:-1]:
        for size in divisors(pod)[:-1]:
            yield replace(flat, kind="leaf-spine", nodes_per_leaf=size, nodes_per_pod=pod)


def _measured(seen: Topology, bytes_PGG: Sequence[Floats], seconds_P: Floats, evidence: Evidence) -> Topology:
    """With the rates that links had under these switches, and their oversubscription."""
    rate_R = _rates_R(seen, bytes_PGG, seconds_P)
    rates = {name: Rate(rate, evidence) for name, rate in _both_ways(seen, rate_R).items()}
    nodes = tuple(measured_node(number, node, rates) for number, node in enumerate(seen.nodes))
    measured = with_rates(replace(seen, nodes=nodes), lambda rate: replace(rate, stated=None))
    for tier in ("leaf", "spine"):
        ratios = [
            below.rate.bytes_per_s / rate
            for below, rate in zip(measured.resources, rate_R.tolist(), strict=True)
            if below.tier == tier and rate > 0
        ]  # of what the uplink would have if it were not oversubscribed
        ratio = float(np.median(ratios)) if ratios else 1.0
        fabric = measured.fabric.measured_as(tier, ratio if ratio > OVERSUBSCRIBED else 1.0, evidence)
        measured = replace(measured, fabric=replace(fabric, stated=None))
    return measured


def _rates_R(topology: Topology, bytes_PGG: Sequence[Floats], seconds_P: Floats) -> Floats:
    """0 where nothing was carried."""
    load_PR = np.array([topology.resource_bytes(bytes_GG) for bytes_GG in bytes_PGG])
    carried_PR = load_PR / seconds_P[:, None]
    most_R = carried_PR.max(axis=0)
    share_PR = np.divide(carried_PR, most_R, out=np.zeros_like(carried_PR), where=most_R > 0)
    full_PR = (share_PR >= FULL * share_PR.max(axis=1, keepdims=True)) & (share_PR >= NOISE)
    rates = [
        float(np.median(carried_PR[full_PR[:, at], at])) if full_PR[:, at].any() else float(most)
        for at, most in enumerate(most_R.tolist())
    ]
    return np.array(rates)


def _both_ways(topology: Topology, rate_R: Floats) -> dict[str, float]:
    """By name. Topologies hold one rate for both directions of a link: the mean of what they had."""
    rate_of = {
        one.name: rate for one, rate in zip(topology.resources, rate_R.tolist(), strict=True) if rate > 0
    }
    back = {(one.tier, one.head, one.tail): one.name for one in topology.resources}
    found = {}
    for one in topology.resources:
        name, _, way = one.name.rpartition("/")
        other = f"{name}/{_BACK[way]}" if way in _BACK else back[one.tier, one.tail, one.head]
        rates = [rate_of[each] for each in (one.name, other) if each in rate_of]
        if rates:
            found[one.name] = sum(rates) / len(rates)
    return found


def _error(topology: Topology, bytes_PGG: Sequence[Floats], seconds_P: Floats) -> float:
    predicted = [(topology.resource_bytes(one) / topology.capacity_R).max() for one in bytes_PGG]
    return float(np.abs(np.array(predicted) / seconds_P - 1).max())
