"""Descent over copies of experts at places: swaps between two places, and one expert's spare copy for another's, by price and then by exact check.

A layer's price is messages per token plus `penalty` times the mean square of how far figures of load are from even, over windows.
Shapes: N places, E experts, X cells and Y figures of load (see reach), W windows, P copies that exist (expert, place), R rounds, V places looked at.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.packing import Ints, Loads
from planner.solvers.methods.affinity.evidence import Evidence
from planner.solvers.methods.affinity.reach import Reach

BEST = 12  # changes of each pair of places that a pass looks at
PATIENCE = 6  # checks in a row that come to nothing, after which a pass ends
WORTH = 2e-5  # messages per token that a change must save
PASSES_TIMES_PLACES = 3200  # of one descent; a pass takes longer with more places
EXCHANGED = 0.25  # of a shake's changes; the others are swaps
STALE = (
    2e-3  # of the price: where passes take turns, a round of turns that lowers it by less ends the descent
)
CELLS_OF_A_PASS = (
    30_000  # copies x places x cells that a pass tabulates; where there are more, passes take turns
)

Bools = npt.NDArray[np.bool_]
Step = tuple[int, int, int]  # expert, place that loses a copy, place that gains one; -1 for none
Change = tuple[Step, Step]


@dataclass(frozen=True, eq=False)
class Layer:
    """What the search knows of a layer.

    `load_WE`: share of each window's assignments; `most_N`: copies of an expert that fit a place; `least_E`: copies that an expert keeps, wherever they are.
    """

    reach: Reach
    evidence: Evidence
    load_WE: Loads
    most_N: Ints
    least_E: Ints

    @cached_property
    def alike_EE(self) -> Loads:
        """What moving two experts' loads alike adds to the mean square, over windows."""
        return np.asarray(self.load_WE.T @ self.load_WE / len(self.load_WE))


class Search:
    """Copies of one layer's experts, and what they cost. Steps change them in place."""

    def __init__(self, layer: Layer, copies_EN: Ints, penalty: float) -> None:
        self.layer, self.penalty = layer, penalty
        self.set_copies(copies_EN)

    def set_copies(self, copies_EN: Ints) -> None:
        reach = self.layer.reach
        self.copies_EN = copies_EN.copy()
        self.share_EX, self.load_EY = reach.share_X(self.copies_EN), reach.load_Y(self.copies_EN)
        self.over_WY = self.layer.load_WE @ self.load_EY - reach.even_Y
        self.price = self.layer.evidence.value(self.share_EX) + self._imbalance(self.over_WY)

    def _imbalance(self, over_WY: Loads) -> float:
        return self.penalty * float((over_WY**2).sum() / len(over_WY))

    def descend(self) -> None:
        """Until no change that the tables show lowers the price, or passes have taken their time."""
        partner_RN = tournament(len(self.layer.most_N))
        cells = int((self.copies_EN > 0).sum()) * self.share_EX.shape[1]
        turns = -(-len(partner_RN) // max(CELLS_OF_A_PASS // cells, 1))
        idle, before = 0, self.price
        for number in range(PASSES_TIMES_PLACES // partner_RN.shape[1]):
            idle = (
                0
                if self._pass(
                    partner_RN[number % turns :: turns], np.arange(number % turns, partner_RN.shape[1], turns)
                )
                else idle + 1
            )
            if idle == turns:
                break
            if turns > 1 and number % turns == turns - 1:
                if self.price > before * (1 - STALE):
                    break
                before = self.price

    def _pass(self, partner_RN: Ints, place_V: Ints) -> int:
        """Check the most promising changes, of experts that differ, one after the other; returns how many were kept."""
        changes = _Tables(self, partner_RN, place_V).changes()
        touched: set[int] = set()
        failed = kept = 0
        for _, change in changes:
            experts = {step[0] for step in change}
            if experts & touched:
                continue
            if self._try(change):
                touched |= experts
                failed, kept = 0, kept + 1
            else:
                failed += 1
            if failed == PATIENCE:
                break
        return kept

    def _try(self, change: Change) -> bool:
        reach, experts = self.layer.reach, [step[0] for step in change]
        copies_CN = self.copies_EN[experts]
        for row, (_, lost, gained) in enumerate(change):
            if lost >= 0:
                copies_CN[row, lost] -= 1
            if gained >= 0:
                copies_CN[row, gained] += 1
        share_CX, load_CY = reach.share_X(copies_CN), reach.load_Y(copies_CN)
        over_WY = self.over_WY + self.layer.load_WE[:, experts] @ (load_CY - self.load_EY[experts])
        price = (
            self._imbalance(over_WY)
            - self._imbalance(self.over_WY)
            + self.layer.evidence.change(self.share_EX, experts, share_CX)
        )
        if price >= -WORTH:
            return False
        self.copies_EN[experts], self.share_EX[experts], self.load_EY[experts] = copies_CN, share_CX, load_CY
        self.over_WY, self.price = over_WY, self.price + price
        return True

    def shake(self, changes: int, random: np.random.Generator) -> None:
        """Swap experts between two places, or give a spare copy's slot to another expert, at random and whatever it costs."""
        copies_EN = self.copies_EN.copy()
        for _ in range(changes):
            one, other = random.choice(len(self.layer.most_N), 2, replace=False)
            if random.random() < EXCHANGED:
                spare_E = (copies_EN[:, one] > 0) & (copies_EN.sum(axis=1) > self.layer.least_E)
                _move(copies_EN, spare_E, copies_EN[:, one] < self.layer.most_N[one], ((one, -1),), random)
            else:
                gives_E = (copies_EN[:, one] > 0) & (copies_EN[:, other] < self.layer.most_N[other])
                takes_E = (copies_EN[:, other] > 0) & (copies_EN[:, one] < self.layer.most_N[one])
                _move(copies_EN, gives_E, takes_E, ((one, -1), (other, 1)), random)
        self.set_copies(copies_EN)


def _move(
    copies_EN: Ints,
    leaves_E: Bools,
    comes_E: Bools,
    steps: tuple[tuple[int, int], ...],
    random: np.random.Generator,
) -> None:
    """One expert of either kind, drawn, takes the steps (place, copies more), the other the same steps backwards; in place."""
    leaving, coming = np.flatnonzero(leaves_E), np.flatnonzero(comes_E)
    if len(leaving) and len(coming):
        expert, other = random.choice(leaving), random.choice(coming)
        for place, more in steps:
            copies_EN[expert, place] += more
            copies_EN[other, place] -= more


class _Tables:
    """The price of every single step, and from them of every pair of steps that keeps places full."""

    def __init__(self, search: Search, partner_RN: Ints, place_V: Ints) -> None:
        self._search, self._partner_RN, self._place_V = search, partner_RN, place_V
        layer, copies_EN = search.layer, search.copies_EN
        self._slope_EX = layer.evidence.slope_EX(search.share_EX)
        self._load_slope_EY = 2 * search.penalty / len(layer.load_WE) * (layer.load_WE.T @ search.over_WY)
        self._one_N = np.eye(len(layer.most_N), dtype=np.int64)
        self._expert_P, self._place_P = np.nonzero(copies_EN)
        self._spare_P = copies_EN[self._expert_P].sum(axis=1) > layer.least_E[self._expert_P]

    def changes(self) -> list[tuple[float, Change]]:
        """(price by the tables, change), the best first; only those that seem to lower the price."""
        found = [*self._swaps(), *self._exchanges()]
        return sorted(found)

    def _swaps(self) -> list[tuple[float, Change]]:
        expert_P, place_P = self._expert_P, self._place_P
        target_PR = self._partner_RN[:, place_P].T
        copies_PRN = (self._search.copies_EN[expert_P] - self._one_N[place_P])[:, None] + self._one_N[
            target_PR
        ]
        price_PR, load_PRY = self._priced(expert_P, copies_PRN)
        full_PR = self._search.copies_EN[expert_P[:, None], target_PR] >= self._search.layer.most_N[target_PR]
        price_PR[full_PR | (target_PR == place_P[:, None])] = np.inf
        cells_N = [np.flatnonzero(place_P == place) for place in range(len(self._one_N))]
        found: list[tuple[float, Change]] = []
        for turn, partner_N in enumerate(self._partner_RN.tolist()):
            for one, other in enumerate(partner_N):
                if one >= other:
                    continue
                a, b = cells_N[one], cells_N[other]
                price_AB = (
                    price_PR[a, turn][:, None]
                    + price_PR[b, turn]
                    + self._meeting(expert_P[a], load_PRY[a, turn], expert_P[b], load_PRY[b, turn])
                )
                found += [
                    (price, ((int(expert_P[a[i]]), one, other), (int(expert_P[b[j]]), other, one)))
                    for price, i, j in _best(price_AB, expert_P[a], expert_P[b])
                ]
        return found

    def _exchanges(self) -> list[tuple[float, Change]]:
        """At one place, a copy of an expert that has others makes room for a copy of another expert."""
        search, expert_P, place_P = self._search, self._expert_P, self._place_P
        spare = np.flatnonzero(self._spare_P)
        if not len(spare):
            return []
        drop_D, drop_load_DY = self._priced(
            expert_P[spare], search.copies_EN[expert_P[spare]] - self._one_N[place_P[spare]]
        )
        add_EV, add_load_EVY = self._priced(
            np.arange(len(search.copies_EN)), search.copies_EN[:, None] + self._one_N[self._place_V]
        )
        room_EV = (search.copies_EN < search.layer.most_N)[:, self._place_V]
        found: list[tuple[float, Change]] = []
        for turn, place in enumerate(self._place_V.tolist()):
            d, a = np.flatnonzero(place_P[spare] == place), np.flatnonzero(room_EV[:, turn])
            if not (len(d) and len(a)):
                continue
            dropped_D = expert_P[spare[d]]
            price_DA = (
                drop_D[d][:, None]
                + add_EV[a, turn]
                + self._meeting(dropped_D, drop_load_DY[d], a, add_load_EVY[a, turn])
            )
            found += [
                (price, ((int(dropped_D[i]), place, -1), (int(a[j]), -1, place)))
                for price, i, j in _best(price_DA, dropped_D, a)
            ]
        return found

    def _priced(self, expert_C: Ints, copies_CN: Ints) -> tuple[Loads, Loads]:
        """(price, change of load_Y) of giving these experts these copies; copies may have one more axis after the first."""
        search, reach = self._search, self._search.layer.reach
        middle = (slice(None),) + (None,) * (copies_CN.ndim - 2)
        moved_CX = reach.share_X(copies_CN) - search.share_EX[expert_C][middle]
        load_CY = reach.load_Y(copies_CN) - search.load_EY[expert_C][middle]
        own_C = search.penalty * np.diagonal(search.layer.alike_EE)[expert_C][middle]
        price_C = np.einsum("c...x,cx->c...", moved_CX, self._slope_EX[expert_C], optimize=True) + np.einsum(
            "c...n,cn->c...", load_CY, self._load_slope_EY[expert_C]
        )
        return price_C + own_C * (load_CY**2).sum(axis=-1), load_CY

    def _meeting(self, expert_A: Ints, load_AY: Loads, expert_B: Ints, load_BY: Loads) -> Loads:
        """price_AB that two steps add by meeting in the same places' loads; what they add by meeting in tokens is left to the exact check."""
        search = self._search
        return np.asarray(
            2 * search.penalty * search.layer.alike_EE[np.ix_(expert_A, expert_B)] * (load_AY @ load_BY.T)
        )


def _best(price_AB: Loads, expert_A: Ints, expert_B: Ints) -> list[tuple[float, int, int]]:
    """The lowest prices below zero with their row and column, where row and column are not the same expert."""
    price_AB[expert_A[:, None] == expert_B] = np.inf
    flat = price_AB.ravel()
    some = np.argpartition(flat, BEST)[:BEST] if len(flat) > BEST else np.arange(len(flat))
    return [
        (float(flat[index]), *divmod(int(index), len(expert_B)))
        for index in np.sort(some)
        if flat[index] < -WORTH
    ]


def tournament(places: int) -> Ints:
    """partner_RN: rounds in which every place meets one other or rests (then it is its own partner); all rounds together are all pairs once.

    >>> tournament(4).tolist()
    [[3, 2, 1, 0], [2, 3, 0, 1], [1, 0, 3, 2]]
    """
    even = places + places % 2
    circle = list(range(even))
    rounds = []
    for _ in range(even - 1):
        partner_N = np.arange(even)
        for one, other in zip(circle[: even // 2], reversed(circle[even // 2 :]), strict=True):
            partner_N[[one, other]] = other, one
        rounds.append(np.where(partner_N < places, partner_N, np.arange(even))[:places])
        circle = [circle[0], circle[-1], *circle[1:-1]]
    return np.array(rounds)
