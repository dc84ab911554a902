"""Traffic that shows the rate of one link: sent by as few ranks as use it. Pure.

Shapes: G ranks, R resources.
"""

from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from planner.topology import Topology

Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Trial:
    """Bytes between ranks that load `resource` to the full in the time that they were made for."""

    resource: int
    bytes_GG: Floats


def pairs_by_resource(topology: Topology) -> dict[int, list[Pair]]:
    """Who uses each resource, as (source, target); a resource that no pair uses is absent."""
    pairs: dict[int, list[Pair]] = {}
    for pair in permutations(range(topology.gpu_count), 2):
        for resource in topology.route(*pair):
            pairs.setdefault(resource, []).append(pair)
    return dict(sorted(pairs.items()))


def trials_of(topology: Topology, seconds: float) -> tuple[Trial, ...]:
    """One for each resource that can be the slowest on somebody's way, of about so many seconds."""
    pairs_of = pairs_by_resource(topology)
    trials = []
    for resource, pairs in pairs_of.items():
        slowest = [pair for pair in pairs if resource in _slowest(topology, pair)]
        chosen = slowest or pairs
        load_R = topology.resource_bytes(even_GG(topology, chosen))
        seconds_R = load_R / topology.capacity_R
        if seconds_R[resource] > 0.999 * seconds_R.max():
            trials.append(Trial(resource, even_GG(topology, chosen) * (seconds / seconds_R.max())))
    return tuple(trials)


def even_GG(topology: Topology, pairs: list[Pair]) -> Floats:
    """One byte for each of these pairs."""
    bytes_GG = np.zeros((topology.gpu_count, topology.gpu_count))
    bytes_GG[tuple(zip(*pairs, strict=True))] = 1.0
    return bytes_GG


def _slowest(topology: Topology, pair: Pair) -> list[int]:
    route = list(topology.route(*pair))
    least = min(topology.capacity_R[route])
    return [one for one in route if topology.capacity_R[one] <= 1.001 * least]
