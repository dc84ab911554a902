"""Which directed resources the traffic between two GPUs uses.

A route is fixed; there is no load balancing over alternatives. Rules, first match wins:

1. One NVLink switch domain (it may span nodes): out of the source's NVLink port, into the destination's.
2. One node, a direct NVLink connection (mesh, bridge): that link. Nothing is relayed through a third GPU.
3. One node otherwise: source PCIe out, up and down the PCIe switches where these differ, the inter-socket
   link where the sockets differ, destination PCIe in.
4. Other node: source PCIe out to its NICs (over switches and sockets as in 3, where the NICs sit elsewhere),
   NICs out, leaf up and down where the leaves differ, spine up and down where the spines differ, NICs in,
   PCIe in. NICs that serve the same GPUs are one resource with the summed rate; a NIC used by several GPUs is
   one resource they share. In a rail fabric a NIC's leaf is that of its rail, so crossing rails goes up and
   down.

A figure that is not known (a PCIe rate, the link between sockets) has no resource and costs nothing.

Shapes: G GPUs in rank order, R resources, K entries of a list. -1 stands for 'has none'.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.topology.resources import LinkEnds, Resource
from planner.topology.tiers import (
    Crossing,
    Floats,
    Ints,
    Uses,
    crossing,
    share_switch,
    uses_of_links,
    uses_of_paths,
)


@dataclass(frozen=True, eq=False)
class Routes:
    """The compiled rules of one machine.

    `egress` and `ingress` are the resources between a GPU and the network, in the order of travel.
    """

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
    leaf_links: dict[int, LinkEnds]  # leaf -> its uplink's two resources, up and down
    spine_links: dict[int, LinkEnds]
    joints: tuple[tuple[str, str], ...]  # vertices that a link without a known rate joins, both ways

    def route(self, i: int, j: int) -> tuple[int, ...]:
        """Indices of the resources that traffic from GPU i to GPU j uses, in the order of travel."""
        if i == j:
            return ()
        if self.switch_G[i] == self.switch_G[j] >= 0:
            return int(self.nvlink_out_G[i]), int(self.nvlink_in_G[j])
        if self.node_G[i] == self.node_G[j]:
            return self.local[i, j]
        return self.egress[i] + self._over_leaves(i, j) + self.ingress[j]

    def _over_leaves(self, i: int, j: int) -> tuple[int, ...]:
        leaf, other_leaf = int(self.leaf_G[i]), int(self.leaf_G[j])
        if leaf == other_leaf:
            return ()
        (up, _), (_, down) = self.leaf_links[leaf], self.leaf_links[other_leaf]
        spine, other_spine = int(self.spine_G[i]), int(self.spine_G[j])
        if spine == other_spine:
            return up, down
        return up, self.spine_links[spine][0], self.spine_links[other_spine][1], down

    def resource_bytes(self, bytes_GG: Floats) -> Floats:
        """Load [R] on every resource of the traffic matrix [source, destination]; its diagonal is free."""
        return self.there_and_back(bytes_GG)[0]

    def there_and_back(self, bytes_GG: Floats) -> tuple[Floats, Floats]:
        """Load [R] on every resource of the traffic matrix, and of its transpose, the way back.

        Nothing is subtracted, only masked and summed: one entry of traffic gives exactly that entry on each
        resource of its route. A view that repeats one row or one column (`numpy.broadcast_to`) is summed
        without being written out.
        """
        count = len(self.node_G)
        if bytes_GG.shape != (count, count):
            raise ValueError(
                f"a traffic matrix of {count} GPUs must be {count} x {count}, not {bytes_GG.shape}"
            )
        pair_K, resource_K = self._local_uses
        i_K, j_K = pair_K // count, pair_K % count
        there_R = _summed(resource_K, bytes_GG[i_K, j_K], len(self.resources))
        back_R = _summed(resource_K, bytes_GG[j_K, i_K], len(self.resources))
        tiers = [(self._over_nvlink(bytes_GG), self._nvlink_uses)]
        tiers += [(over_tier.totals(bytes_GG), uses) for over_tier, uses in self._crossings]
        for (sent_G, received_G), uses in tiers:
            uses.charge(there_R, sent_G, received_G)
            uses.charge(back_R, received_G, sent_G)
        return there_R, back_R

    def pair_prices(self, price_R: Floats) -> Floats:
        """Price [source, destination] of a byte between two GPUs, where one on resource r costs `price_R[r]`.

        The transpose of `resource_bytes`.
        """
        count = len(self.node_G)
        pair_K, resource_K = self._local_uses
        price_GG = _summed(pair_K, price_R[resource_K], count * count).reshape(count, count)
        joined_GG = share_switch(self.switch_G)
        apart_GG = ~joined_GG
        np.fill_diagonal(joined_GG, val=False)
        self._nvlink_uses.add_prices(price_GG, joined_GG, price_R)
        for label_G, uses in self._network_tiers:
            apart_GG &= label_G[:, None] != label_G
            uses.add_prices(price_GG, apart_GG, price_R)
        return price_GG

    def _over_nvlink(self, bytes_GG: Floats) -> tuple[Floats, Floats]:
        """(sent_G, received_G) through NVLink switches."""
        source_K, target_K = self._nvlink_pairs
        bytes_K = bytes_GG[source_K, target_K]
        return _summed(source_K, bytes_K, len(bytes_GG)), _summed(target_K, bytes_K, len(bytes_GG))

    @cached_property
    def _nvlink_pairs(self) -> tuple[Ints, Ints]:
        joined_GG = share_switch(self.switch_G)
        np.fill_diagonal(joined_GG, val=False)
        source_K, target_K = np.nonzero(joined_GG)
        return source_K, target_K

    @cached_property
    def _nvlink_uses(self) -> Uses:
        gpus_K = np.flatnonzero(self.switch_G >= 0)
        return Uses(gpus_K, self.nvlink_out_G[gpus_K], gpus_K, self.nvlink_in_G[gpus_K])

    @cached_property
    def _local_uses(self) -> tuple[Ints, Ints]:
        count = len(self.node_G)
        uses = [(i * count + j, resource) for (i, j), path in self.local.items() for resource in path]
        pairs, resources = zip(*uses, strict=True) if uses else ((), ())
        return np.array(pairs, dtype=np.int64), np.array(resources, dtype=np.int64)

    @cached_property
    def _network_tiers(self) -> tuple[tuple[Ints, Uses], ...]:
        """NICs, leaves and spines: whom they charge for GPUs that differ in this label and all before."""
        return (
            (self.node_G, uses_of_paths(self.egress, self.ingress)),
            (self.leaf_G, uses_of_links(self.leaf_G, self.leaf_links)),
            (self.spine_G, uses_of_links(self.spine_G, self.spine_links)),
        )

    @cached_property
    def _crossings(self) -> tuple[tuple[Crossing, Uses], ...]:
        """For the tiers of the network that have traffic: what goes over them, and whom it charges."""
        found: list[tuple[Crossing, Uses]] = []
        apart: list[Ints] = []
        for label_G, uses in self._network_tiers:
            apart.append(label_G)
            over_tier = crossing(apart, self.switch_G)
            if not over_tier.crosses_CC.any():
                break
            found.append((over_tier, uses))
        return tuple(found)


def _summed(at_K: Ints, bytes_K: Floats, count: int) -> Floats:
    return np.bincount(at_K, bytes_K, count).astype(np.float64)
