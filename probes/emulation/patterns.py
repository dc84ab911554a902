"""Traffic by which the rates of a cluster's links can be told apart, and its switches found. Pure.

Shapes: G ranks.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from planner.topology import Topology
from probes.emulation.trials import Pair, even_GG, pairs_by_resource

Floats = npt.NDArray[np.float64]
OF_SWITCHES = ("blocks", "rails")  # how the names of patterns begin that cross switches more and more


def patterns(topology: Topology) -> dict[str, Floats]:
    """By name; of each a byte between every pair that takes part.

    Each link is loaded by all who use it, by those who use nothing else if they can, and for one other host;
    then hosts exchange within blocks and rails, and across: where one is slower, a switch lies between.
    """
    found = _blocks(topology)
    for resource, pairs in pairs_by_resource(topology).items():
        name = topology.resources[resource].name
        least = min(len(topology.route(*pair)) for pair in pairs)
        found[name] = pairs
        found[f"{name}, shortest ways"] = [pair for pair in pairs if len(topology.route(*pair)) == least]
        found[f"{name}, next host"] = [pair for pair in pairs if _next(topology, pair)]
    unlike: dict[frozenset[Pair], str] = {}
    for name, pairs in found.items():
        if pairs:
            unlike.setdefault(frozenset(pairs), name)
    return {name: even_GG(topology, sorted(pairs)) for pairs, name in unlike.items()}


def _blocks(topology: Topology) -> dict[str, list[Pair]]:
    found: dict[str, list[Pair]] = {}
    everyone = set(_between_hosts(topology, topology.node_count))
    for size in divisors(topology.node_count)[1:]:
        within = set(_between_hosts(topology, size))
        alike = {(i, j) for i, j in within if topology.index_G[i] == topology.index_G[j]}
        found[f"blocks of {size} hosts"] = sorted(within)
        found[f"blocks of {size} hosts, across them"] = sorted(everyone - within)
        found[f"rails of {size} hosts"] = sorted(alike)
        found[f"rails of {size} hosts, across them"] = sorted(within - alike)
    return found


def divisors(count: int) -> list[int]:
    return [size for size in range(1, count + 1) if count % size == 0]


def _next(topology: Topology, pair: Pair) -> bool:
    """Between hosts 0 and 1, 2 and 3, ..."""
    node, other = (int(topology.node_G[rank]) for rank in pair)
    return node != other and node // 2 == other // 2


def _between_hosts(topology: Topology, block: int) -> Iterable[Pair]:
    """All pairs of a block that go over NICs."""
    node_G, domain_G = topology.node_G, topology.domain_G
    for i in range(topology.gpu_count):
        for j in range(topology.gpu_count):
            apart = node_G[i] != node_G[j] and domain_G[i] != domain_G[j]
            if apart and node_G[i] // block == node_G[j] // block:
                yield i, j
