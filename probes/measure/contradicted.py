"""A benchmark whose rates are not taken, and that contradicts what is stated all the same: a fault."""

from dataclasses import replace

from planner.base import BadInput
from planner.topology import MEASURED_OTHERWISE, Topology, against_stated
from probes.base.facts import MeasureFacts
from probes.measure.all_to_all import all_to_all_of


def departure(topology: Topology, run: MeasureFacts) -> str:
    """'5 of the stated 50 GB/s a NIC (10 %)' of an all-to-all; empty where it agrees or does not fit."""
    if run.kind == "torch-gloo":
        return ""  # between CPU processes, which GPUs do not go through
    try:
        shown = against_stated(topology, all_to_all_of(topology, run))
    except BadInput:
        return ""
    return shown.text if shown is not None and shown.departs else ""


def marked(topology: Topology, run: MeasureFacts) -> Topology:
    """With the fault on every node, so that alike ones stay alike and plans can say it."""
    text = departure(topology, run)
    if not text:
        return topology
    fault = f"{MEASURED_OTHERWISE}{run.source} shows {text}; its rates are not taken"
    nodes = tuple(
        replace(node, faults=tuple(dict.fromkeys((*node.faults, fault)))) for node in topology.nodes
    )
    return replace(topology, nodes=nodes)
