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

from planner.figures import Rate

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
        """Load [R] on every resource of the traffic matrix [source, destination]; the diagonal costs nothing.

        Nothing is subtracted, only masked and summed: one entry of traffic gives exactly that entry on each resource of its route.
        """
        count = len(self.node_G)
        if bytes_GG.shape != (count, count):
            raise ValueError(f"a traffic matrix of {count} GPUs must be {count} x {count}, not {bytes_GG.shape}")
        pair_K, resource_K = self._local_uses
        load_R = np.bincount(resource_K, bytes_GG.ravel()[pair_K], len(self.resources)).astype(np.float64)
        same_switch_GG = (self.switch_G[:, None] == self.switch_G) & (self.switch_G >= 0)
        same_switch_GG[np.diag_indices(count)] = False
        if same_switch_GG.any():
            _charge(load_R, bytes_GG, same_switch_GG, self._nvlink_uses)
        network_GG = (self.node_G[:, None] != self.node_G) & ~same_switch_GG
        for label_G, uses in ((None, self._nic_uses), (self.leaf_G, self._leaf_uses), (self.spine_G, self._spine_uses)):
            if label_G is not None:
                network_GG &= label_G[:, None] != label_G
            if not network_GG.any():
                break
            _charge(load_R, bytes_GG, network_GG, uses)
        return load_R

    @cached_property
    def _local_uses(self) -> tuple[Ints, Ints]:
        uses = [(i * len(self.node_G) + j, resource) for (i, j), path in self.local.items() for resource in path]
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
        price_GG = np.bincount(pair_K, price_R[resource_K], count * count).astype(np.float64).reshape(count, count)
        same_switch_GG = (self.switch_G[:, None] == self.switch_G) & (self.switch_G >= 0)
        network_GG = (self.node_G[:, None] != self.node_G) & ~same_switch_GG
        priced: list[tuple[npt.NDArray[np.bool_], Uses]] = [(same_switch_GG & ~np.eye(count, dtype=bool), self._nvlink_uses), (network_GG, self._nic_uses)]
        for label_G, uses in ((self.leaf_G, self._leaf_uses), (self.spine_G, self._spine_uses)):
            network_GG = network_GG & (label_G[:, None] != label_G)
            priced.append((network_GG, uses))
        for pairs_GG, (sources_K, out_K, destinations_K, in_K) in priced:
            out_G, in_G = np.bincount(sources_K, price_R[out_K], count), np.bincount(destinations_K, price_R[in_K], count)
            price_GG += np.where(pairs_GG, out_G[:, None] + in_G, 0.0)
        return price_GG


Uses = tuple[Ints, Ints, Ints, Ints]  # source GPUs and the resources they charge, destination GPUs and the resources they charge


def _charge(load_R: Floats, bytes_GG: Floats, mask_GG: npt.NDArray[np.bool_], uses: Uses) -> None:
    sources_K, out_K, destinations_K, in_K = uses
    part_GG = np.where(mask_GG, bytes_GG, 0.0)
    np.add.at(load_R, out_K, part_GG.sum(axis=1)[sources_K])
    np.add.at(load_R, in_K, part_GG.sum(axis=0)[destinations_K])


def _flat(paths: tuple[tuple[int, ...], ...]) -> tuple[Ints, Ints]:
    gpus = [gpu for gpu, path in enumerate(paths) for _ in path]
    return np.array(gpus, dtype=np.int64), np.array([resource for path in paths for resource in path], dtype=np.int64)


def _shared(label_G: Ints, links: dict[int, tuple[int, int]]) -> Uses:
    gpus_K = np.flatnonzero(np.isin(label_G, list(links)))
    ends_K2 = np.array([links[label] for label in label_G[gpus_K].tolist()], dtype=np.int64).reshape(-1, 2)
    return gpus_K, ends_K2[:, 0], gpus_K, ends_K2[:, 1]
