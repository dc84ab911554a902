"""When each rank should be done: the links that its messages share with others, all flows at once.

On a link, flows of b_1, b_2, ... bytes get equal parts of its rate, so that flow k is through after
sum over i of min(b_i, b_k) / rate; the last is through when all bytes are, which is what the cost model says
of the link. A rank is done when its last flow is, sent or received.

Shapes: G GPUs (one rank each), R resources, D links (both directions of one are one link), K uses of a
resource by a pair of GPUs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.topology import Topology

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
DIRECTIONS = ("out", "in", "up", "down")  # the last word of a resource's name


@dataclass(frozen=True, eq=False)
class Uses:
    """Which pair of GPUs uses which resource of a machine, and which link that is a direction of."""

    topology: Topology
    resource_K: Ints
    source_K: Ints
    target_K: Ints
    links: tuple[str, ...]
    tiers: tuple[str, ...]  # of each link
    link_R: Ints


@dataclass(frozen=True, eq=False)
class Finish:
    """Seconds until each rank is done with a link's flows, and each pair with its own; 0: no traffic."""

    seconds_DG: Floats
    seconds_GG: Floats  # the later of the two directions of a pair; the diagonal is the rank itself

    @property
    def seconds_G(self) -> Floats:
        return self.seconds_GG.diagonal()


def uses_of(topology: Topology) -> Uses:
    gpus = range(topology.gpu_count)
    found = [(one, i, j) for i in gpus for j in gpus for one in topology.route(i, j)]
    resource_K, source_K, target_K = np.array(found, dtype=np.int64).reshape(-1, 3).T
    names = [link_name(resource.name) for resource in topology.resources]
    tiers = {name: one.tier for name, one in zip(names, topology.resources, strict=True)}
    number = {name: index for index, name in enumerate(tiers)}
    link_R = np.array([number[name] for name in names], dtype=np.int64)
    return Uses(topology, resource_K, source_K, target_K, tuple(tiers), tuple(tiers.values()), link_R)


def own_links_GD(uses: Uses) -> Bools:
    """Links that are used by no pair without that GPU: its port, its NIC where it shares none."""
    shape = uses.topology.gpu_count, len(uses.links)
    with_GD, link_K = np.zeros(shape, dtype=np.int64), uses.link_R[uses.resource_K]
    for gpu_K in (uses.source_K, uses.target_K):
        np.add.at(with_GD, (gpu_K, link_K), 1)
    own_GD: Bools = with_GD == np.bincount(link_K, minlength=shape[1])
    return own_GD


def link_name(resource: str) -> str:
    """
    >>> link_name("node1/nic0/out"), link_name("leaf0/up"), link_name("node0/gpu0/nvlink/gpu1")
    ('node1/nic0', 'leaf0', 'node0/gpu0/nvlink/gpu1')
    """
    start, _, last = resource.rpartition("/")
    return start if last in DIRECTIONS else resource


def finish(
    uses: Uses, bytes_GG: Floats, bytes_per_s_R: Floats, place_G: Sequence[int] | None = None
) -> Finish:
    """`place_G`: the GPU at which each rank really is, where that is not its own."""
    gpus = len(bytes_GG)
    rank_G = np.argsort(np.arange(gpus) if place_G is None else np.array(place_G))
    source_K, target_K = rank_G[uses.source_K], rank_G[uses.target_K]
    bytes_K = bytes_GG[source_K, target_K]
    sent = np.flatnonzero(bytes_K > 0)
    order = sent[np.lexsort((bytes_K[sent], uses.resource_K[sent]))]
    resource_K, source_K, target_K = uses.resource_K[order], source_K[order], target_K[order]
    seconds_K = _shared(resource_K, bytes_K[order], len(bytes_per_s_R)) / bytes_per_s_R[resource_K]
    seconds_DG, seconds_GG = np.zeros((len(uses.links), gpus)), np.zeros((gpus, gpus))
    for rank_K, other_K in ((source_K, target_K), (target_K, source_K)):
        np.maximum.at(seconds_DG, (uses.link_R[resource_K], rank_K), seconds_K)
        np.maximum.at(seconds_GG, (rank_K, other_K), seconds_K)
    np.fill_diagonal(seconds_GG, seconds_GG.max(axis=1, initial=0.0))
    return Finish(seconds_DG, seconds_GG)


def _shared(resource_K: Ints, bytes_K: Floats, resources: int) -> Floats:
    """Bytes that a resource has carried when each of its flows is through; flows in order of size."""
    count_R = np.bincount(resource_K, minlength=resources)
    first_R = np.cumsum(count_R) - count_R
    before_K = np.concatenate([[0.0], np.cumsum(bytes_K)])
    smaller_K = before_K[1:] - before_K[first_R[resource_K]]
    larger_K = (first_R + count_R)[resource_K] - np.arange(len(bytes_K)) - 1
    carried_K: Floats = smaller_K + bytes_K * larger_K
    return carried_K
