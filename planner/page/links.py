"""Traffic of a placement, summed over layers: what each GPU sends to each, and what each link carries.

Shapes: G GPUs, R resources.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.cost import constants_of, efficiency_R, exchanges_L
from planner.placement import Placement
from planner.problem import Problem

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Traffic:
    """Of one step's dispatches; the combine takes the same ways back."""

    bytes_GG: Floats  # from row to column; the diagonal stays on its GPU
    bytes_R: Floats
    seconds_R: Floats  # that each link is busy, without start-up


def traffic_of(problem: Problem, placement: Placement) -> Traffic:
    """Over all layers. Expectations, from the problem's load."""
    topology, gpus = problem.topology, problem.gpus
    bytes_GG = np.zeros((gpus, gpus))
    if gpus > 1:
        for layer in exchanges_L(problem, placement, range(len(placement.layer_ids))):
            for one in layer:
                if one.phase == "dispatch":
                    bytes_GG += one.bytes_GG
    bytes_R = topology.resource_bytes(bytes_GG) if topology.resources else np.zeros(0)
    reached_R = topology.capacity_R * efficiency_R(problem, constants_of(problem).dispatch)
    return Traffic(bytes_GG, bytes_R, bytes_R / reached_R)


def by_node(bytes_GG: Floats, node_G: npt.NDArray[np.int64]) -> Floats:
    """Summed over the GPUs of each node [node, node]."""
    starts = np.flatnonzero(np.diff(node_G, prepend=-1))
    return np.asarray(np.add.reduceat(np.add.reduceat(bytes_GG, starts, axis=0), starts, axis=1))
