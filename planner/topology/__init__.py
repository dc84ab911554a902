"""Topologies: GPUs in rank order, the links between them, and which of those each pair uses."""

from planner.topology.all_to_all import AllToAll, everyone_GG
from planner.topology.bisection import Bisection, bisections
from planner.topology.calibrated import (
    calibrated,
    check_rates,
    is_calibration_text,
    rates_of,
    read_calibration,
    write_calibration,
)
from planner.topology.calibration import HIGHEST_EFFICIENCY, Calibration, PhaseCalibration, Reached, Scale
from planner.topology.calibration_dict import calibration_to_dict
from planner.topology.calibration_shape import CALIBRATION
from planner.topology.chips import chip_of, gpu_names
from planner.topology.comparison import ABOVE, REACHED, Comparison, against_stated, kept_comparisons, unstated
from planner.topology.fabric import Fabric
from planner.topology.from_dict import topology_from_dict
from planner.topology.gpu_models import gpu_model, gpu_model_from_dict
from planner.topology.gpu_speeds import read_speeds
from planner.topology.machine import LARGEST_GPUS
from planner.topology.machine_shape import TOPOLOGY, TOPOLOGY_SHAPE
from planner.topology.named_gpus import ranks_named
from planner.topology.nodes import LARGEST_NODE_GPUS, LARGEST_NODE_NICS, MEASURED_OTHERWISE, Nic, Node
from planner.topology.nvlink import Island, NvLink, PairLink
from planner.topology.pcie import Pcie, PcieSwitch
from planner.topology.read import read_topology
from planner.topology.resources import Resource
from planner.topology.seats import SEATS, Seat, compare, planned_seats, recorded_seats, seat_from_dict
from planner.topology.stated import as_stated, with_rates, with_share
from planner.topology.to_dict import alike
from planner.topology.topology import Topology

__all__ = [
    "ABOVE",
    "CALIBRATION",
    "HIGHEST_EFFICIENCY",
    "LARGEST_GPUS",
    "LARGEST_NODE_GPUS",
    "LARGEST_NODE_NICS",
    "MEASURED_OTHERWISE",
    "REACHED",
    "SEATS",
    "TOPOLOGY",
    "TOPOLOGY_SHAPE",
    "AllToAll",
    "Bisection",
    "Calibration",
    "Comparison",
    "Fabric",
    "Island",
    "Nic",
    "Node",
    "NvLink",
    "PairLink",
    "Pcie",
    "PcieSwitch",
    "PhaseCalibration",
    "Reached",
    "Resource",
    "Scale",
    "Seat",
    "Topology",
    "against_stated",
    "alike",
    "as_stated",
    "bisections",
    "calibrated",
    "calibration_to_dict",
    "check_rates",
    "chip_of",
    "compare",
    "everyone_GG",
    "gpu_model",
    "gpu_model_from_dict",
    "gpu_names",
    "is_calibration_text",
    "kept_comparisons",
    "planned_seats",
    "ranks_named",
    "rates_of",
    "read_calibration",
    "read_speeds",
    "read_topology",
    "recorded_seats",
    "seat_from_dict",
    "topology_from_dict",
    "unstated",
    "with_rates",
    "with_share",
    "write_calibration",
]
