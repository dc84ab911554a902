"""Descent over copies of experts at places: changes by price in tables, then by exact check; and shakes.

Shapes: N places, E experts, R rounds, V places looked at.
"""

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.packing import Ints
from planner.solvers.methods.affinity.copies import Copies
from planner.solvers.methods.affinity.tables import Tables

PATIENCE = 6  # checks in a row that come to nothing, after which a pass ends
PASSES_TIMES_PLACES = 3200  # of one descent; a pass takes longer with more places
EXCHANGED = 0.25  # of a shake's changes; the others are swaps
# Of the price: where passes take turns, a round of turns that lowers it by less ends the descent
STALE = 2e-3
# Copies x places x cells that a pass tabulates; where there are more, passes take turns
CELLS_OF_A_PASS = 30_000

Bools = npt.NDArray[np.bool_]


class Search(Copies):
    """Descents from where the copies are, and shakes that leave a local optimum."""

    def descend(self) -> None:
        """Until no change that the tables show lowers the price, or passes have taken their time."""
        partner_RN = tournament(len(self.layer.most_N))
        cells = int((self.copies_EN > 0).sum()) * self.share_EX.shape[1]
        turns = -(-len(partner_RN) // max(CELLS_OF_A_PASS // cells, 1))
        idle, before = 0, self.price
        for number in range(PASSES_TIMES_PLACES // partner_RN.shape[1]):
            turn = number % turns
            kept = self._pass(partner_RN[turn::turns], np.arange(turn, partner_RN.shape[1], turns))
            idle = 0 if kept else idle + 1
            if idle == turns:
                break
            if turns > 1 and turn == turns - 1:
                if self.price > before * (1 - STALE):
                    break
                before = self.price

    def _pass(self, partner_RN: Ints, place_V: Ints) -> int:
        """Check the most promising changes, of experts that differ, one after the other.

        Returns how many were kept.
        """
        changes = Tables(self, partner_RN, place_V).changes()
        touched: set[int] = set()
        failed = kept = 0
        for _, change in changes:
            experts = {step[0] for step in change}
            if experts & touched:
                continue
            if self.change(change):
                touched |= experts
                failed, kept = 0, kept + 1
            else:
                failed += 1
            if failed == PATIENCE:
                break
        return kept

    def shake(self, changes: int, random: np.random.Generator) -> None:
        """Swap experts of two places, or give a spare copy's slot to another, at random and at any cost."""
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
    """One that leaves, drawn, takes the steps (place, copies more), one that comes takes them backwards."""
    leaving, coming = np.flatnonzero(leaves_E), np.flatnonzero(comes_E)
    if len(leaving) and len(coming):
        expert, other = random.choice(leaving), random.choice(coming)
        for place, more in steps:
            copies_EN[expert, place] += more
            copies_EN[other, place] -= more


def tournament(places: int) -> Ints:
    """partner_RN: rounds in which every place meets one other or rests (then it is its own partner).

    All rounds together are all pairs once.

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
