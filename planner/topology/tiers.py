"""One tier of a machine: which traffic goes over it, and which resources that charges.

Shapes: G GPUs in rank order, R resources, C runs of GPUs that a tier takes for one, K entries of a list.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Paths = tuple[tuple[int, ...], ...]  # resources between each GPU and the network


@dataclass(frozen=True, eq=False)
class Uses:
    """What GPU `source_K` sends over the tier charges resource `out_K`.

    What GPU `target_K` receives charges `in_K`.
    """

    source_K: Ints
    out_K: Ints
    target_K: Ints
    in_K: Ints

    def charge(self, load_R: Floats, sent_G: Floats, received_G: Floats) -> None:
        np.add.at(load_R, self.out_K, sent_G[self.source_K])
        np.add.at(load_R, self.in_K, received_G[self.target_K])

    def add_prices(self, price_GG: Floats, pairs_GG: Bools, price_R: Floats) -> None:
        """To the price of a byte between these pairs."""
        out_G = np.bincount(self.source_K, price_R[self.out_K], len(price_GG))
        in_G = np.bincount(self.target_K, price_R[self.in_K], len(price_GG))
        price_GG += np.where(pairs_GG, out_G[:, None] + in_G, 0.0)


def uses_of_paths(egress: Paths, ingress: Paths) -> Uses:
    return Uses(*_flat(egress), *_flat(ingress))


def _flat(paths: Paths) -> tuple[Ints, Ints]:
    gpus = [gpu for gpu, path in enumerate(paths) for _ in path]
    resources = [resource for path in paths for resource in path]
    return np.array(gpus, dtype=np.int64), np.array(resources, dtype=np.int64)


def uses_of_links(label_G: Ints, links: dict[int, tuple[int, int]]) -> Uses:
    """The two resources of the link of each GPU's leaf or spine."""
    gpus_K = np.flatnonzero(np.isin(label_G, list(links)))
    ends_K2 = np.array([links[label] for label in label_G[gpus_K].tolist()], dtype=np.int64).reshape(-1, 2)
    return Uses(gpus_K, ends_K2[:, 0], gpus_K, ends_K2[:, 1])


@dataclass(frozen=True, eq=False)
class Crossing:
    """Traffic that goes over one tier. Runs of GPUs in rank order that it does not tell apart are one row."""

    crosses_CC: Floats  # 1 where traffic between two runs goes over the tier, else 0
    run_G: Ints
    first_C: Ints
    gpus_beyond_C: Floats  # GPUs that a run reaches over the tier

    def totals(self, bytes_GG: Floats) -> tuple[Floats, Floats]:
        """(sent_G, received_G) over the tier."""
        if 0 in bytes_GG.strides:
            return self._totals_of_alike(bytes_GG)
        if not bytes_GG.flags.c_contiguous and bytes_GG.flags.f_contiguous:
            # the way back over the same tier; rows in memory are quick to sum
            return self.totals(bytes_GG.T)[::-1]
        if len(self.first_C) == len(self.run_G):
            over_GG = self.crosses_CC * bytes_GG
            return over_GG.sum(axis=1), over_GG.sum(axis=0)
        sent_GC = np.add.reduceat(bytes_GG, self.first_C, axis=1)
        received_CG = np.add.reduceat(bytes_GG, self.first_C, axis=0)
        sent_G = (self.crosses_CC[self.run_G] * sent_GC).sum(axis=1)
        return sent_G, (self.crosses_CC[:, self.run_G] * received_CG).sum(axis=0)

    def _totals_of_alike(self, bytes_GG: Floats) -> tuple[Floats, Floats]:
        """Where all send, or all receive, alike: one row or column, broadcast."""
        alike_senders = bytes_GG.strides[0] == 0
        bytes_G = bytes_GG[0] if alike_senders else bytes_GG[:, 0]
        bytes_C = np.add.reduceat(bytes_G, self.first_C)
        alike_G = np.einsum("dc,c->d", self.crosses_CC, bytes_C)[self.run_G]
        own_G = bytes_G * self.gpus_beyond_C[self.run_G]
        return (alike_G, own_G) if alike_senders else (own_G, alike_G)


def crossing(apart: list[Ints], switch_G: Ints) -> Crossing:
    """Between GPUs that differ in every label of `apart` and share no NVLink switch."""
    labels_KG = np.stack([*apart, switch_G])
    run_G = np.cumsum(np.concatenate([[False], (labels_KG[:, 1:] != labels_KG[:, :-1]).any(axis=0)]))
    first_C = np.flatnonzero(np.diff(run_G, prepend=-1))
    crosses_CC = ~share_switch(switch_G[first_C])
    for label_G in apart:
        crosses_CC &= label_G[first_C][:, None] != label_G[first_C]
    gpus_beyond_C = crosses_CC[:, run_G].sum(axis=1)
    return Crossing(crosses_CC.astype(np.float64), run_G, first_C, gpus_beyond_C.astype(np.float64))


def share_switch(switch_G: Ints) -> Bools:
    """[one, other]: whether an NVLink switch joins both; each is joined to itself where it has one."""
    same_GG: Bools = (switch_G[:, None] == switch_G) & (switch_G >= 0)
    return same_GG
