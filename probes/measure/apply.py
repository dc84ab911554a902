"""A measurement takes the place of the line rates that it waited for in a topology. Pure.

Of those links, and only those. An all-to-all that was measured is routed over the topology; the links that it
loads most for their capacity are its bottleneck. Where those are of one tier by a clear margin, what they
carried per second is their measured rate. Where it is not clear, nothing is changed and the reason is said.

Shapes: G GPUs of the topology, R resources.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, Evidence, Rate, human_bandwidth
from planner.topology import Resource, Topology
from probes.base.facts import MeasureFacts
from probes.measure.fit import POOREST_FIT, Fit, fit_facts
from probes.measure.measured_node import measured_node
from probes.measure.placing import sent_GG

CLEAR_MARGIN = 1.1  # the next tier must be that much faster, else the measurement may have waited for it
ABOVE_LINE_RATE = 1.05  # what cannot be measured on the machine that the topology describes

Floats = npt.NDArray[np.float64]


def apply_measurement(topology: Topology, facts: MeasureFacts, date: str | None = None) -> Topology:
    """The topology with the measured rates of one tier, evidence 'measured'.

    BadInput where it does not fit, or the tier is not clear: nothing is changed.
    """
    fitted = fit_facts(facts)
    if fitted.held_out_error > POOREST_FIT:
        poor = f"its sizes do not lie on a line ({fitted.text})"
        raise BadInput(f"{facts.source}: {poor}; measure again on a quiet machine, with larger sizes")
    load_R = topology.resource_bytes(sent_GG(topology, facts))
    tier, chosen_R = bottleneck(topology, load_R, facts.source)
    evidence = Evidence("measured", _evidence(facts, fitted, date or facts.date))
    measured = {}
    for index in np.flatnonzero(chosen_R).tolist():
        resource, rate = topology.resources[index], float(load_R[index] * fitted.bytes_per_s)
        _check_line_rate(resource, rate, facts.source)
        measured[resource.name] = Rate(rate, evidence)
    if tier in ("leaf", "spine"):
        below = {"leaf": topology.fabric.oversubscription, "spine": topology.fabric.pod_oversubscription}
        first = topology.resources[int(np.flatnonzero(chosen_R)[0])]
        ratio = below[tier] * first.rate.bytes_per_s / measured[first.name].bytes_per_s
        return replace(topology, fabric=topology.fabric.measured_as(tier, ratio, evidence))
    if tier not in ("nvlink", "pcie", "nic"):
        waited = "waited for the links between PCIe switches and sockets, for which no measured rate is kept"
        raise BadInput(f"{facts.source}: {waited}; measure rails, or inside a domain")
    nodes = (measured_node(number, node, measured) for number, node in enumerate(topology.nodes))
    return replace(topology, nodes=tuple(nodes))


def _check_line_rate(resource: Resource, rate: float, source: str) -> None:
    line = resource.rate.as_stated
    if rate <= ABOVE_LINE_RATE * line.bytes_per_s or line.evidence.kind in ("assumed", "measured"):
        return
    says = f"whose rate is {human_bandwidth(line.bytes_per_s)} ({line.evidence.source})"
    measures = f"measures {human_bandwidth(rate)} on {resource.name}, {says}"
    raise BadInput(f"{source}: {measures}; this topology is not the machine that was measured")


def bottleneck(topology: Topology, load_R: Floats, source: str) -> tuple[str, npt.NDArray[np.bool_]]:
    """The tier that the traffic waits for, and its resources that are loaded to the full.

    BadInput where another tier is nearly as slow.
    """
    seconds_R = load_R / topology.capacity_R
    worst: dict[str, float] = {}
    for resource, seconds in zip(topology.resources, seconds_R.tolist(), strict=True):
        worst[resource.tier] = max(worst.get(resource.tier, 0.0), seconds)
    slowest = max(worst.values(), default=0.0)
    if not slowest > 0:
        raise BadInput(f"{source}: uses no link whose rate the topology {topology.name} keeps")
    close = sorted(tier for tier, seconds in worst.items() if seconds * CLEAR_MARGIN > slowest)
    if "nic" in close and {"nic", "leaf", "spine"}.issuperset(close):
        close = ["nic"]  # uplinks have no rate of their own: they are the NICs' together / oversubscription
    if len(close) > 1:
        both = f"could have waited for {close[0]} or for {close[1]}"
        raise BadInput(f"{source}: {both}, which are about as fast in {topology.name}; measure them apart")
    (tier,) = close
    tiers_R = np.array([resource.tier == tier for resource in topology.resources])
    return tier, tiers_R & (seconds_R > 0.99 * worst[tier])


def _evidence(facts: MeasureFacts, fitted: Fit, date: str | None) -> str:
    when = f", {date}" if date else ""
    quality = f"fit over {fitted.sizes} sizes, mean error {fitted.error:.1%}"
    return f"{facts.kind} {facts.collective}, {_extent(facts)}: {facts.source}{when}; {quality}"


def _extent(facts: MeasureFacts) -> str:
    hosts = len(Counter(facts.hosts))
    where = f" on {hosts} host{'s' if hosts > 1 else ''}" if hosts else ""
    if facts.groups > 1:
        return f"{facts.groups} x {facts.ranks // facts.groups} ranks ({facts.scope}){where}"
    return f"{facts.ranks} ranks{where}"
