"""Topologies: GPUs in rank order, the links between them, and which of those each pair uses."""

from planner.topology.bisection import Bisection, bisections
from planner.topology.gpu_speeds import read_speeds
from planner.topology.nodes import (
    LARGEST_NODE_GPUS,
    LARGEST_NODE_NICS,
    Fabric,
    Island,
    Nic,
    Node,
    NvLink,
    PairLink,
    Pcie,
    PcieSwitch,
)
from planner.topology.read import gpu_model, read_topology, topology_from_dict
from planner.topology.routes import Resource
from planner.topology.seats import Seat, compare, planned_seats, recorded_seats, seat_from_dict
from planner.topology.to_dict import alike
from planner.topology.topology import LARGEST_GPUS, Topology

__all__ = [
    "LARGEST_GPUS",
    "LARGEST_NODE_GPUS",
    "LARGEST_NODE_NICS",
    "Bisection",
    "Fabric",
    "Island",
    "Nic",
    "Node",
    "NvLink",
    "PairLink",
    "Pcie",
    "PcieSwitch",
    "Resource",
    "Seat",
    "Topology",
    "alike",
    "bisections",
    "compare",
    "gpu_model",
    "planned_seats",
    "read_speeds",
    "read_topology",
    "recorded_seats",
    "seat_from_dict",
    "topology_from_dict",
]
