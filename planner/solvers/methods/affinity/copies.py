"""Copies of a layer's experts at places, what they cost, and single steps that change them.

A layer's price is messages per token plus `penalty` times the mean square of how far figures of load are from
even, over windows.

Shapes: N places, E experts, X cells and Y figures of load (see reach), W windows, C experts that change.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.solvers.kernels.packing import Ints, Loads
from planner.solvers.methods.affinity.evidence import Evidence
from planner.solvers.methods.affinity.reach import Reach

WORTH = 2e-5  # messages per token that a change must save

Step = tuple[int, int, int]  # expert, place that loses a copy, place that gains one; -1 for none
Change = tuple[Step, Step]


@dataclass(frozen=True, eq=False)
class Layer:
    """What the search knows of a layer."""

    reach: Reach
    evidence: Evidence
    load_WE: Loads  # share of each window's assignments
    most_N: Ints  # copies of an expert that fit a place
    least_E: Ints  # copies that an expert keeps, wherever they are

    @cached_property
    def alike_EE(self) -> Loads:
        """What moving two experts' loads alike adds to the mean square, over windows."""
        return np.asarray(self.load_WE.T @ self.load_WE / len(self.load_WE))


class Copies:
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

    def change(self, change: Change) -> bool:
        """Make the change, if it lowers the price enough; returns whether it did."""
        reach, experts = self.layer.reach, [step[0] for step in change]
        copies_CN = self.copies_EN[experts]
        for row, (_, lost, gained) in enumerate(change):
            if lost >= 0:
                copies_CN[row, lost] -= 1
            if gained >= 0:
                copies_CN[row, gained] += 1
        share_CX, load_CY = reach.share_X(copies_CN), reach.load_Y(copies_CN)
        over_WY = self.over_WY + self.layer.load_WE[:, experts] @ (load_CY - self.load_EY[experts])
        more_imbalance = self._imbalance(over_WY) - self._imbalance(self.over_WY)
        price = more_imbalance + self.layer.evidence.change(self.share_EX, experts, share_CX)
        if price >= -WORTH:
            return False
        self.copies_EN[experts], self.share_EX[experts], self.load_EY[experts] = copies_CN, share_CX, load_CY
        self.over_WY, self.price = over_WY, self.price + price
        return True
