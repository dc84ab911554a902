"""NVLink domains: GPUs behind one switch, or linked in pairs directly or through others.

Shapes: G GPUs in rank order.
"""

import numpy as np
import numpy.typing as npt

from planner.topology.machine import by_first_rank
from planner.topology.nodes import Node

Ints = npt.NDArray[np.int64]


def nvlink_domain_G(nodes: tuple[Node, ...], switch_G: Ints) -> Ints:
    """The domain of each GPU, numbered by first GPU; a GPU without NVLink is alone in its own."""
    leader = list(range(len(switch_G)))
    first_of_switch: dict[int, int] = {}
    for rank, switch in enumerate(switch_G.tolist()):
        if switch >= 0:
            leader[rank] = first_of_switch.setdefault(switch, rank)
    for start, node in by_first_rank(nodes):
        inside = slice(start, start + len(node.gpus))
        for link in node.nvlink.pairs:
            low, high = sorted(leader[start + gpu] for gpu in link.gpus)
            leader[inside] = [low if other == high else other for other in leader[inside]]
    return np.unique(leader, return_inverse=True)[1].astype(np.int64)
