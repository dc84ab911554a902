"""Equal and unequal rows side by side: what a total of redundant experts gains spread by gain over layers.

Shapes: L layers, S sizes tried.
"""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from planner.base import human_seconds
from planner.cost import CurvePoint
from planner.load import spans
from planner.planning.spread import Spread


@dataclass(frozen=True, eq=False)
class BudgetReport:
    """Equal rows and the spread of one total over layers.

    Slots are a GPU's; seconds are a step's, over all layers.
    """

    layer_ids: tuple[int, ...]
    gpus: int
    experts: int
    fewest_slots: int  # a GPU and layer
    total_redundant: int  # as used: whole slots a GPU
    equal_extra: int
    unequal: Spread
    points: tuple[CurvePoint, ...]
    budget_for_equal_time: int | None
    notes: tuple[str, ...]

    def redundant(self, extra: int) -> int:
        """Redundant experts of all layers that `extra` slots a GPU over all layers come to."""
        return len(self.layer_ids) * (self.fewest_slots * self.gpus - self.experts) + extra * self.gpus

    @property
    def equal_redundant(self) -> int:
        return self.redundant(self.equal_extra * len(self.layer_ids))

    @property
    def unequal_redundant(self) -> int:
        return self.redundant(int(self.unequal.extra_L.sum()))

    @property
    def redundant_for_equal_time(self) -> int | None:
        """With which unequal rows take no longer than equal ones."""
        budget = self.budget_for_equal_time
        return None if budget is None else self.redundant(budget)

    @property
    def equal_seconds(self) -> float:
        return self.points[self.equal_extra].fitted_seconds

    @property
    def held_out_seconds(self) -> tuple[float, float] | None:
        """Of equal and of unequal rows."""
        equal = self.points[self.equal_extra].held_out_seconds_L
        if equal is None:
            return None
        held_SL = np.array([point.held_out_seconds_L for point in self.points], dtype=np.float64)
        return float(equal.sum()), float(held_SL[self.unequal.extra_L, np.arange(len(self.layer_ids))].sum())

    def text(self) -> str:
        head = f"{self.total_redundant} redundant experts over {len(self.layer_ids)} layers"
        return "\n".join(
            [
                f"{head} on {self.gpus} GPUs, {self.experts} experts a layer",
                *self._rows(),
                *self._changes(),
                *self._spread(),
                *(f"Note: {note}" for note in self.notes),
            ]
        )

    def _rows(self) -> list[str]:
        """Seconds of equal and of unequal rows."""
        equal = f"{self.fewest_slots + self.equal_extra} slots a GPU in every layer"
        bound = human_seconds(self.unequal.bound_seconds)
        unequal = f"spread by gain, no spread takes less than {bound}"
        rows = (
            ("equal rows:", self.equal_redundant, equal, self.equal_seconds),
            ("unequal rows:", self.unequal_redundant, unequal, self.unequal.seconds),
        )
        return [
            f"{name:<13} {human_seconds(seconds)} a step with {redundant} redundant ({how})"
            for name, redundant, how, seconds in rows
        ]

    def _changes(self) -> list[str]:
        lines = [f"fitted load: unequal rows take {_change(self.equal_seconds, self.unequal.seconds)}"]
        if self.held_out_seconds:
            before, after = self.held_out_seconds
            seconds = f"({human_seconds(before)}, {human_seconds(after)})"
            lines.append(f"held-out load: unequal rows take {_change(before, after)} {seconds}")
        if self.redundant_for_equal_time is not None:
            experts = f"{self.redundant_for_equal_time} redundant experts"
            lines.append(f"with unequal rows the time of equal ones takes {experts}")
        return lines

    def _spread(self) -> list[str]:
        """Which layers get how many slots."""
        by_extra = sorted(zip(self.unequal.extra_L.tolist(), self.layer_ids, strict=True))
        return [
            f"  {self.fewest_slots + extra} slots a GPU: layers {spans([layer for _, layer in some])}"
            for extra, some in groupby(by_extra, key=lambda pair: pair[0])
        ]

    def to_dict(self) -> dict[str, Any]:
        equal_held_out, unequal_held_out = self.held_out_seconds or (None, None)
        return {
            "layers": list(self.layer_ids),
            "gpus": self.gpus,
            "total_redundant": self.total_redundant,
            "equal": {
                "redundant": self.equal_redundant,
                "slots_per_gpu": self.fewest_slots + self.equal_extra,
                "fitted_seconds": self.equal_seconds,
                "held_out_seconds": equal_held_out,
            },
            "unequal": {
                "redundant": self.unequal_redundant,
                "slots_per_gpu": (self.fewest_slots + self.unequal.extra_L).tolist(),
                "fitted_seconds": self.unequal.seconds,
                "held_out_seconds": unequal_held_out,
                "bound_seconds": self.unequal.bound_seconds,
            },
            "redundant_for_equal_time": self.redundant_for_equal_time,
            "curves": [
                {"slots_per_gpu": point.slots_per_gpu, "fitted_seconds": point.fitted_seconds_L.tolist()}
                for point in self.points
            ],
            "notes": list(self.notes),
        }


def _change(before: float, after: float) -> str:
    return f"{abs(1 - after / before):.2%} {'less' if after <= before else 'more'} time than equal ones"
