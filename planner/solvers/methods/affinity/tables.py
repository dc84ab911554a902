"""Tables: the price of every single step, and from them of every pair of steps that keeps places full.

Pairs are swaps between two places, and one expert's spare copy for another's.

Shapes: N places, E experts, X cells and Y figures of load (see reach), P copies that exist (expert, place),
D of them spare, R rounds, V places looked at; A and B experts of the first and second step of a pair.
"""

from collections.abc import Iterator

import numpy as np

from planner.solvers.kernels.packing import Ints, Loads
from planner.solvers.methods.affinity.copies import WORTH, Change, Copies

BEST = 12  # changes of each pair of places that a pass looks at

Priced = tuple[float, Change]


class Tables:
    """The price of every single step, and from them of every pair of steps that keeps places full."""

    def __init__(self, copies: Copies, partner_RN: Ints, place_V: Ints) -> None:
        self._copies, self._partner_RN, self._place_V = copies, partner_RN, place_V
        layer, copies_EN = copies.layer, copies.copies_EN
        self._slope_EX = layer.evidence.slope_EX(copies.share_EX)
        self._load_slope_EY = 2 * copies.penalty / len(layer.load_WE) * (layer.load_WE.T @ copies.over_WY)
        self._one_N = np.eye(len(layer.most_N), dtype=np.int64)
        self._expert_P, self._place_P = np.nonzero(copies_EN)
        self._spare_P = copies_EN[self._expert_P].sum(axis=1) > layer.least_E[self._expert_P]

    def changes(self) -> list[Priced]:
        """(price by the tables, change), the best first; only those that seem to lower the price."""
        return sorted([*self._swaps(), *self._exchanges()])

    def _swaps(self) -> Iterator[Priced]:
        expert_P, place_P, copies_EN = self._expert_P, self._place_P, self._copies.copies_EN
        target_PR = self._partner_RN[:, place_P].T
        without_PN = copies_EN[expert_P] - self._one_N[place_P]
        price_PR, load_PRY = self._priced(expert_P, without_PN[:, None] + self._one_N[target_PR])
        full_PR = copies_EN[expert_P[:, None], target_PR] >= self._copies.layer.most_N[target_PR]
        price_PR[full_PR | (target_PR == place_P[:, None])] = np.inf
        cells_N = [np.flatnonzero(place_P == place) for place in range(len(self._one_N))]
        for turn, partner_N in enumerate(self._partner_RN.tolist()):
            for one, other in enumerate(partner_N):
                if one >= other:
                    continue
                a, b = cells_N[one], cells_N[other]
                expert_A, expert_B = expert_P[a], expert_P[b]
                meeting_AB = self._meeting(expert_A, load_PRY[a, turn], expert_B, load_PRY[b, turn])
                price_AB = price_PR[a, turn][:, None] + price_PR[b, turn] + meeting_AB
                for price, i, j in _best(price_AB, expert_A, expert_B):
                    yield price, ((int(expert_A[i]), one, other), (int(expert_B[j]), other, one))

    def _exchanges(self) -> Iterator[Priced]:
        """At one place, a copy of an expert that has others makes room for another expert's."""
        copies_EN = self._copies.copies_EN
        expert_D, place_D = self._expert_P[self._spare_P], self._place_P[self._spare_P]
        if not len(expert_D):
            return
        drop_D, drop_load_DY = self._priced(expert_D, copies_EN[expert_D] - self._one_N[place_D])
        more_EVN = copies_EN[:, None] + self._one_N[self._place_V]
        add_EV, add_load_EVY = self._priced(np.arange(len(copies_EN)), more_EVN)
        room_EV = (copies_EN < self._copies.layer.most_N)[:, self._place_V]
        for turn, place in enumerate(self._place_V.tolist()):
            d, a = np.flatnonzero(place_D == place), np.flatnonzero(room_EV[:, turn])
            if not (len(d) and len(a)):
                continue
            meeting_DA = self._meeting(expert_D[d], drop_load_DY[d], a, add_load_EVY[a, turn])
            price_DA = drop_D[d][:, None] + add_EV[a, turn] + meeting_DA
            for price, i, j in _best(price_DA, expert_D[d], a):
                yield price, ((int(expert_D[d[i]]), place, -1), (int(a[j]), -1, place))

    def _priced(self, expert_C: Ints, copies_CN: Ints) -> tuple[Loads, Loads]:
        """(price, change of load_Y) of giving these experts these copies.

        Copies may have one more axis after the first.
        """
        now, reach = self._copies, self._copies.layer.reach
        middle = (slice(None),) + (None,) * (copies_CN.ndim - 2)
        moved_CX = reach.share_X(copies_CN) - now.share_EX[expert_C][middle]
        load_CY = reach.load_Y(copies_CN) - now.load_EY[expert_C][middle]
        own_C = now.penalty * np.diagonal(now.layer.alike_EE)[expert_C][middle]
        messages_C = np.einsum("c...x,cx->c...", moved_CX, self._slope_EX[expert_C], optimize=True)
        price_C = messages_C + np.einsum("c...n,cn->c...", load_CY, self._load_slope_EY[expert_C])
        return price_C + own_C * (load_CY**2).sum(axis=-1), load_CY

    def _meeting(self, expert_A: Ints, load_AY: Loads, expert_B: Ints, load_BY: Loads) -> Loads:
        """price_AB that two steps add by meeting in the same places' loads.

        What they add by meeting in tokens is left to the exact check.
        """
        alike_AB = self._copies.layer.alike_EE[np.ix_(expert_A, expert_B)]
        return np.asarray(2 * self._copies.penalty * alike_AB * (load_AY @ load_BY.T))


def _best(price_AB: Loads, expert_A: Ints, expert_B: Ints) -> list[tuple[float, int, int]]:
    """The lowest prices below zero with their row and column, where these are not the same expert."""
    price_AB[expert_A[:, None] == expert_B] = np.inf
    flat = price_AB.ravel()
    some = np.argpartition(flat, BEST)[:BEST] if len(flat) > BEST else np.arange(len(flat))
    return [
        (float(flat[index]), *divmod(int(index), len(expert_B)))
        for index in np.sort(some)
        if flat[index] < -WORTH
    ]
