"""Which directed resources the traffic between two GPUs uses. A route is fixed; there is no load balancing over alternatives.

Rules, first match wins:
1. One NVLink switch domain (it may span nodes): out of the source's NVLink port, into the destination's.
2. One node, a direct NVLink connection (mesh, bridge): that link. Nothing is relayed through a third GPU.
3. One node otherwise: source PCIe out, up and down the PCIe switches where these differ, the inter-socket link where the sockets differ, destination PCIe in.
4. Other node: source PCIe out to its NICs (over switches and sockets as in 3, where the NICs sit elsewhere), NICs out, leaf up and down where the leaves
   differ, spine up and down where the spines differ, NICs in, PCIe in. NICs that serve the same GPUs are one resource with the summed rate; a NIC used
   by several GPUs is one resource they share. In a rail fabric a NIC's leaf is that of its rail, so crossing rails goes up and down.
A figure that is not known (a PCIe rate, the link between sockets) has no resource and costs nothing.

Shapes: G GPUs in rank order, R resources. -1 stands for 'has none'.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from planner.base import Rate

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Resource:
    """A directed capacity: an edge of the capacity graph from vertex `tail` to vertex `head`."""

    name: str
    tier: str  # nvlink, pcie, host, nic, leaf, spine
    rate: Rate
    tail: str
    head: str


@dataclass(frozen=True, eq=False)
class Routes:
    """The compiled rules of one machine. `egress` and `ingress` are the resources between a GPU and the network, in the order of travel."""

    resources: tuple[Resource, ...]
    node_G: Ints
    switch_G: Ints  # NVLink switch domain
    leaf_G: Ints
    spine_G: Ints
    nvlink_out_G: Ints
    nvlink_in_G: Ints
    local: dict[tuple[int, int], tuple[int, ...]]  # pairs of one node that no NVLink switch joins
    egress: tuple[tuple[int, ...], ...]
    ingress: tuple[tuple[int, ...], ...]
    leaf_links: dict[int, tuple[int, int]]  # leaf -> its uplink's two resources, up and down
    spine_links: dict[int, tuple[int, int]]
    joints: tuple[tuple[str, str], ...]  # vertices that a link without a known rate joins, both ways

    def route(self, i: int, j: int) -> tuple[int, ...]:
        """Indices of the resources that traffic from GPU i to GPU j uses, in the order of travel."""
        if i == j:
            return ()
        if self.switch_G[i] == self.switch_G[j] >= 0:
            return int(self.nvlink_out_G[i]), int(self.nvlink_in_G[j])
        if self.node_G[i] == self.node_G[j]:
            return self.local[i, j]
        hops = self.egress[i]
        if self.leaf_G[i] != self.leaf_G[j]:
            (up, _), (_, down) = self.leaf_links[int(self.leaf_G[i])], self.leaf_links[int(self.leaf_G[j])]
            between: tuple[int, ...] = ()
            if self.spine_G[i] != self.spine_G[j]:
                between = self.spine_links[int(self.spine_G[i])][0], self.spine_links[int(self.spine_G[j])][1]
            hops = (*hops, up, *between, down)
        return hops + self.ingress[j]

    def resource_bytes(self, bytes_GG: Floats) -> Floats:
        """Load [R] on every resource of the traffic matrix [source, destination]; the diagonal costs nothing."""
        return self.there_and_back(bytes_GG)[0]

    def there_and_back(self, bytes_GG: Floats) -> tuple[Floats, Floats]:
        """Load [R] on every resource of the traffic matrix, and of its transpose, the way back.

        Nothing is subtracted, only masked and summed: one entry of traffic gives exactly that entry on each resource of its route. A view that repeats
        one row or one column (`numpy.broadcast_to`) is summed without being written out.
        """
        count = len(self.node_G)
        if bytes_GG.shape != (count, count):
            raise ValueError(
                f"a traffic matrix of {count} GPUs must be {count} x {count}, not {bytes_GG.shape}"
            )
        pair_K, resource_K = self._local_uses
        i_K, j_K = pair_K // count, pair_K % count
        there_R, back_R = (
            _summed(resource_K, bytes_GG[ends], len(self.resources)) for ends in ((i_K, j_K), (j_K, i_K))
        )
        source_K, target_K = self._nvlink_pairs
        bytes_K = bytes_GG[source_K, target_K]
        tiers: list[tuple[tuple[Floats, Floats], Uses]] = [
            ((_summed(source_K, bytes_K, count), _summed(target_K, bytes_K, count)), self._nvlink_uses)
        ]
        tiers += [(crossing.totals(bytes_GG), uses) for crossing, uses in self._crossings]
        for (sent_G, received_G), uses in tiers:
            _charge(there_R, sent_G, received_G, uses)
            _charge(back_R, received_G, sent_G, uses)
        return there_R, back_R

    @cached_property
    def _nvlink_pairs(self) -> tuple[Ints, Ints]:
        same_GG = (self.switch_G[:, None] == self.switch_G) & (self.switch_G >= 0)
        np.fill_diagonal(same_GG, val=False)
        source_K, target_K = np.nonzero(same_GG)
        return source_K, target_K

    @cached_property
    def _crossings(self) -> tuple[tuple["Crossing", "Uses"], ...]:
        """For NICs, leaves and spines: the traffic that goes over them, and whom it charges."""
        found: list[tuple[Crossing, Uses]] = []
        apart: list[Ints] = [self.node_G]
        for label_G, uses in (
            (None, self._nic_uses),
            (self.leaf_G, self._leaf_uses),
            (self.spine_G, self._spine_uses),
        ):
            apart += [] if label_G is None else [label_G]
            crossing = _crossing(apart, self.switch_G)
            if not crossing.crosses_CC.any():
                break
            found.append((crossing, uses))
        return tuple(found)

    @cached_property
    def _local_uses(self) -> tuple[Ints, Ints]:
        uses = [
            (i * len(self.node_G) + j, resource) for (i, j), path in self.local.items() for resource in path
        ]
        pairs, resources = zip(*uses, strict=True) if uses else ((), ())
        return np.array(pairs, dtype=np.int64), np.array(resources, dtype=np.int64)

    @cached_property
    def _nvlink_uses(self) -> "Uses":
        gpus_K = np.flatnonzero(self.switch_G >= 0)
        return gpus_K, self.nvlink_out_G[gpus_K], gpus_K, self.nvlink_in_G[gpus_K]

    @cached_property
    def _nic_uses(self) -> "Uses":
        return *_flat(self.egress), *_flat(self.ingress)

    @cached_property
    def _leaf_uses(self) -> "Uses":
        return _shared(self.leaf_G, self.leaf_links)

    @cached_property
    def _spine_uses(self) -> "Uses":
        return _shared(self.spine_G, self.spine_links)

    def pair_prices(self, price_R: Floats) -> Floats:
        """Price [source, destination] of a byte between two GPUs, where a byte on resource r costs `price_R[r]`: the transpose of `resource_bytes`."""
        count = len(self.node_G)
        pair_K, resource_K = self._local_uses
        price_GG = (
            np.bincount(pair_K, price_R[resource_K], count * count).astype(np.float64).reshape(count, count)
        )
        same_switch_GG = (self.switch_G[:, None] == self.switch_G) & (self.switch_G >= 0)
        network_GG = (self.node_G[:, None] != self.node_G) & ~same_switch_GG
        priced: list[tuple[npt.NDArray[np.bool_], Uses]] = [
            (same_switch_GG & ~np.eye(count, dtype=bool), self._nvlink_uses),
            (network_GG, self._nic_uses),
        ]
        for label_G, uses in ((self.leaf_G, self._leaf_uses), (self.spine_G, self._spine_uses)):
            network_GG = network_GG & (label_G[:, None] != label_G)
            priced.append((network_GG, uses))
        for pairs_GG, (sources_K, out_K, destinations_K, in_K) in priced:
            out_G, in_G = (
                np.bincount(sources_K, price_R[out_K], count),
                np.bincount(destinations_K, price_R[in_K], count),
            )
            price_GG += np.where(pairs_GG, out_G[:, None] + in_G, 0.0)
        return price_GG


Uses = tuple[
    Ints, Ints, Ints, Ints
]  # source GPUs and the resources they charge, destination GPUs and the resources they charge


@dataclass(frozen=True, eq=False)
class Crossing:
    """Traffic that goes over one tier. Runs of GPUs in rank order that the tier does not tell apart are one row: C runs."""

    crosses_CC: Floats  # 1 where traffic between two runs goes over the tier, else 0
    run_G: Ints
    first_C: Ints
    gpus_beyond_C: Floats  # GPUs that a run reaches over the tier

    def totals(self, bytes_GG: Floats) -> tuple[Floats, Floats]:
        """(sent_G, received_G) over the tier."""
        count = len(self.run_G)
        if 0 in bytes_GG.strides:  # all send, or all receive, alike
            bytes_G = bytes_GG[0] if bytes_GG.strides[0] == 0 else bytes_GG[:, 0]
            alike_G = np.einsum("dc,c->d", self.crosses_CC, np.add.reduceat(bytes_G, self.first_C))[
                self.run_G
            ]
            own_G = bytes_G * self.gpus_beyond_C[self.run_G]
            return (alike_G, own_G) if bytes_GG.strides[0] == 0 else (own_G, alike_G)
        if (
            not bytes_GG.flags.c_contiguous and bytes_GG.flags.f_contiguous
        ):  # the way back over the same tier; rows in memory are quick to sum
            return self.totals(bytes_GG.T)[::-1]
        if len(self.first_C) == count:
            over_GG = self.crosses_CC * bytes_GG
            return over_GG.sum(axis=1), over_GG.sum(axis=0)
        sent_GC, received_CG = (
            np.add.reduceat(bytes_GG, self.first_C, axis=1),
            np.add.reduceat(bytes_GG, self.first_C, axis=0),
        )
        return (self.crosses_CC[self.run_G] * sent_GC).sum(axis=1), (
            self.crosses_CC[:, self.run_G] * received_CG
        ).sum(axis=0)


def _crossing(apart: list[Ints], switch_G: Ints) -> Crossing:
    """Between GPUs that differ in every label of `apart` and share no NVLink switch."""
    labels_KG = np.stack([*apart, switch_G])
    run_G = np.cumsum(np.concatenate([[False], (labels_KG[:, 1:] != labels_KG[:, :-1]).any(axis=0)]))
    first_C = np.flatnonzero(np.diff(run_G, prepend=-1))
    switch_C = switch_G[first_C]
    crosses_CC = ~((switch_C[:, None] == switch_C) & (switch_C >= 0))
    for label_G in apart:
        crosses_CC &= label_G[first_C][:, None] != label_G[first_C]
    return Crossing(
        crosses_CC.astype(np.float64), run_G, first_C, crosses_CC[:, run_G].sum(axis=1).astype(np.float64)
    )


def _summed(at_K: Ints, bytes_K: Floats, count: int) -> Floats:
    return np.bincount(at_K, bytes_K, count).astype(np.float64)


def _charge(load_R: Floats, sent_G: Floats, received_G: Floats, uses: Uses) -> None:
    sources_K, out_K, destinations_K, in_K = uses
    np.add.at(load_R, out_K, sent_G[sources_K])
    np.add.at(load_R, in_K, received_G[destinations_K])


def _flat(paths: tuple[tuple[int, ...], ...]) -> tuple[Ints, Ints]:
    gpus = [gpu for gpu, path in enumerate(paths) for _ in path]
    return np.array(gpus, dtype=np.int64), np.array(
        [resource for path in paths for resource in path], dtype=np.int64
    )


def _shared(label_G: Ints, links: dict[int, tuple[int, int]]) -> Uses:
    gpus_K = np.flatnonzero(np.isin(label_G, list(links)))
    ends_K2 = np.array([links[label] for label in label_G[gpus_K].tolist()], dtype=np.int64).reshape(-1, 2)
    return gpus_K, ends_K2[:, 0], gpus_K, ends_K2[:, 1]
