"""A measurement takes the place of line rates in a topology: of those links, and only those, that the measurement waited for. Pure.

An all-to-all that was measured is routed over the topology; the links that it loads most for their capacity are its bottleneck. Where those are of one
tier by a clear margin, what they carried per second is their measured rate. Where it is not clear, nothing is changed and the reason is said.

Shapes: G GPUs of the topology, R resources.
"""

from collections import Counter
from dataclasses import replace
from itertools import groupby

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, Evidence, Rate, human_bandwidth
from planner.topology import Node, Topology
from probes.base.facts import MeasureFacts
from probes.measure.fit import Fit, fit_facts

CLEAR_MARGIN = 1.1  # the next tier must be that much faster, else the measurement may have waited for it
POOREST_FIT = 0.15  # mean error of sizes left out, beyond which a line says nothing about the link
ABOVE_LINE_RATE = 1.05  # what cannot be measured on the machine that the topology describes

Floats = npt.NDArray[np.float64]


def apply_measurement(topology: Topology, facts: MeasureFacts, date: str | None = None) -> Topology:
    """The topology with the measured rates of one tier, evidence 'measured'. BadInput where it does not fit, or the tier is not clear: nothing is changed."""
    fitted = fit_facts(facts)
    if fitted.held_out_error > POOREST_FIT:
        raise BadInput(
            f"{facts.source}: its sizes do not lie on a line ({fitted.text}); measure again on a quiet machine, with larger sizes"
        )
    ranks_G = placed(topology, facts)
    load_R = topology.resource_bytes(_bytes_GG(topology, facts, ranks_G))
    tier, chosen_R = bottleneck(topology, load_R, facts.source)
    when = date or facts.date
    source = f"{facts.kind} {facts.collective}, {_extent(facts)}: {facts.source}{f', {when}' if when else ''}; {_quality(fitted)}"
    measured = {}
    for index in np.flatnonzero(chosen_R).tolist():
        resource, rate = topology.resources[index], float(load_R[index] * fitted.bytes_per_s)
        if rate > ABOVE_LINE_RATE * resource.rate.bytes_per_s and resource.rate.evidence.kind not in (
            "assumed",
            "measured",
        ):
            both = f"{human_bandwidth(rate)} on {resource.name}, whose rate is {human_bandwidth(resource.rate.bytes_per_s)} ({resource.rate.evidence.source})"
            raise BadInput(
                f"{facts.source}: measures {both}; this topology is not the machine that was measured"
            )
        measured[resource.name] = Rate(rate, Evidence("measured", source))
    if tier not in ("nvlink", "pcie", "nic"):
        raise BadInput(
            f"{facts.source}: waited for the {_TIER_WORDS.get(tier, tier)}, for which no measured rate is kept; measure rails, or inside a domain"
        )
    return replace(
        topology,
        nodes=tuple(_measured_node(number, node, measured) for number, node in enumerate(topology.nodes)),
    )


_TIER_WORDS = {
    "host": "links between PCIe switches and sockets",
    "leaf": "uplinks of the leaf switches",
    "spine": "uplinks of the spines",
}


def placed(topology: Topology, facts: MeasureFacts) -> list[int]:
    """The GPU of each rank. Hosts are found by name; where the nodes have none, or all have others, they are the nodes in order."""
    if facts.ranks > topology.gpu_count:
        raise BadInput(
            f"{facts.source}: ran over {facts.ranks} ranks, the topology {topology.name} has {topology.gpu_count} GPUs"
        )
    if not facts.hosts:
        if facts.ranks == topology.gpu_count:
            return list(range(facts.ranks))
        raise BadInput(
            f"{facts.source}: does not say which hosts its {facts.ranks} ranks were on, of {topology.gpu_count} GPUs; measure all of them"
        )
    hosts = [(host, len(list(members))) for host, members in groupby(facts.hosts)]
    if len({host for host, _ in hosts}) != len(hosts):
        raise BadInput(f"{facts.source}: its ranks go back and forth between hosts; start it host by host")
    names = {node.name: number for number, node in enumerate(topology.nodes) if node.name}
    known = [names.get(host) for host, _ in hosts]
    if (
        names
        and None in known
        and (any(number is not None for number in known) or len(hosts) < topology.node_count)
    ):
        stranger = hosts[known.index(None)][0]
        raise BadInput(
            f"{facts.source}: ran on host {stranger}, which the topology {topology.name} does not have"
        )
    numbers = [number for number in known if number is not None] or list(range(len(hosts)))
    starts = np.cumsum([0, *(len(node.gpus) for node in topology.nodes)]).tolist()
    gpus: list[int] = []
    for number, (host, count) in zip(numbers, hosts, strict=True):
        if number >= topology.node_count or count != len(topology.nodes[number].gpus):
            has = (
                f"its node {number} has {len(topology.nodes[number].gpus)} GPUs"
                if number < topology.node_count
                else f"it has {topology.node_count} nodes"
            )
            raise BadInput(
                f"{facts.source}: {count} ranks on host {host} do not fit the topology {topology.name}: {has}"
            )
        gpus += range(starts[number], starts[number] + count)
    return gpus


def groups_of(facts: MeasureFacts) -> list[list[int]]:
    """The ranks of each collective that ran at the same time: rails hold every n-th rank, domains the ranks in a row."""
    size = facts.ranks // facts.groups
    if facts.scope == "rail":
        return [list(range(first, facts.ranks, facts.groups)) for first in range(facts.groups)]
    return [list(range(first * size, (first + 1) * size)) for first in range(facts.groups)]


def _bytes_GG(topology: Topology, facts: MeasureFacts, gpus: list[int]) -> Floats:
    """What an all-to-all of size 1 sends between the GPUs."""
    if facts.collective != "alltoall" or facts.ranks < 2:
        raise BadInput(
            f"{facts.source}: is {facts.collective} over {facts.ranks} ranks; the rate of links is taken from an all-to-all of at least two"
        )
    if facts.scope == "all" and facts.groups > 1:
        raise BadInput(f"{facts.source}: ran in {facts.groups} groups that are neither domains nor rails")
    bytes_GG = np.zeros((topology.gpu_count, topology.gpu_count))
    for members in groups_of(facts):
        here = [gpus[rank] for rank in members]
        bytes_GG[np.ix_(here, here)] = 1 / len(here)
    np.fill_diagonal(bytes_GG, 0.0)
    return bytes_GG


def bottleneck(topology: Topology, load_R: Floats, source: str) -> tuple[str, npt.NDArray[np.bool_]]:
    """The tier that the traffic waits for, and its resources that are loaded to the full. BadInput where another tier is nearly as slow."""
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
        raise BadInput(
            f"{source}: could have waited for {close[0]} or for {close[1]}, which are about as fast in {topology.name}; measure them apart"
        )
    (tier,) = close
    tiers_R = np.array([resource.tier == tier for resource in topology.resources])
    return tier, tiers_R & (seconds_R > 0.99 * worst[tier])


def _measured_node(number: int, node: Node, measured: dict[str, Rate]) -> Node:
    """Resources are found by the names that `planner.topology.wiring` gives them."""
    here = f"node{number}"

    def port(gpu: int, kind: str, now: Rate) -> Rate:
        return measured.get(f"{here}/gpu{gpu}/{kind}/out", now)

    islands = tuple(
        replace(
            island,
            rates=tuple(
                port(gpu, "nvlink", rate) for gpu, rate in zip(island.gpus, island.rates, strict=True)
            ),
        )
        for island in node.nvlink.islands
    )
    pairs = tuple(
        replace(link, rate=measured.get(f"{here}/gpu{min(link.gpus)}/nvlink/gpu{max(link.gpus)}", link.rate))
        for link in node.nvlink.pairs
    )
    pcie = node.pcie
    if pcie is not None:
        pcie = replace(pcie, rates=tuple(port(gpu, "pcie", rate) for gpu, rate in enumerate(pcie.rates)))
    nics = list(node.nics)
    for pool in node.nic_pools:
        rate = measured.get(f"{here}/nic{pool[0]}" + (f"+{len(pool) - 1}" if len(pool) > 1 else "") + "/out")
        if rate is not None:
            whole = sum(node.nics[nic].rate.bytes_per_s for nic in pool)
            for nic in pool:
                nics[nic] = replace(
                    nics[nic], rate=Rate(rate.bytes_per_s * nics[nic].rate.bytes_per_s / whole, rate.evidence)
                )
    return replace(
        node, nvlink=replace(node.nvlink, islands=islands, pairs=pairs), pcie=pcie, nics=tuple(nics)
    )


def _extent(facts: MeasureFacts) -> str:
    hosts = len(Counter(facts.hosts))
    where = f" on {hosts} host{'s' if hosts > 1 else ''}" if hosts else ""
    return (
        f"{facts.groups} x {facts.ranks // facts.groups} ranks ({facts.scope}){where}"
        if facts.groups > 1
        else f"{facts.ranks} ranks{where}"
    )


def _quality(fitted: Fit) -> str:
    return f"fit over {fitted.sizes} sizes, mean error {fitted.error:.1%}"
