"""The rates that an emulated cluster gets: those of its topology, divided by one number. Pure.

A small machine cannot carry what GPUs exchange; phases in its emulation stand far above noise only where all
ranks together send no more than it moves with ease.
"""

from dataclasses import replace

from planner.base import Evidence, Rate
from planner.topology import Topology, with_rates

ALL_BYTES_PER_S = 160e6  # that all ranks send together: on two cores, links keep their rates up to there


def scale_for(topology: Topology) -> float:
    """What to divide all rates by: 1.0 where the machine at hand can carry them as they are.

    Else so that what all ranks can send at the same time comes to ALL_BYTES_PER_S.
    """
    return max(1.0, _most_sent_bytes_per_s(topology) / ALL_BYTES_PER_S)


def _most_sent_bytes_per_s(topology: Topology) -> float:
    """Of all ranks together, each with all that it can send first at once."""
    first = {topology.route(i, j)[:1] for i in range(topology.gpu_count) for j in range(topology.gpu_count)}
    return float(sum(topology.capacity_R[resource] for route in first for resource in route))


def as_shaped(topology: Topology, scale: float) -> Topology:
    """The cluster that is made: rates divided by `scale`, measured as they were shaped; hosts with names."""

    def shaped(rate: Rate) -> Rate:
        return Rate(rate.bytes_per_s / scale, _shaped(rate.evidence, scale))

    fabric = topology.fabric
    if fabric.kind != "none":
        fabric = replace(fabric, evidence=_shaped(fabric.evidence, 1.0), stated=None)
    named = tuple(replace(node, name=node.name or f"host{at}") for at, node in enumerate(topology.nodes))
    return with_rates(replace(topology, nodes=named, fabric=fabric), shaped)


def _shaped(evidence: Evidence, scale: float) -> Evidence:
    return Evidence("measured", f"shaped by tc, 1/{scale:g} of: {evidence.source}")
