"""The curve over R: what each number of redundant experts gains and takes, and which one is chosen.

Shapes: L layers.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

TOLERANCE = 0.02  # fewer replicas are preferred where they cost at most this share of the step more
WORTH = 0.005  # a gain below this share of the step is none
PATIENCE = 3  # points in a row without a gain, and the curve ends


@dataclass(frozen=True, eq=False)
class CurvePoint:
    """One R, as the method that searched it places it.

    Seconds per layer and step; bytes on each GPU, the least free one where GPUs differ.
    """

    redundant: int
    slots_per_gpu: int
    fitted_seconds_L: npt.NDArray[np.float64]
    held_out_seconds_L: npt.NDArray[np.float64] | None
    max_over_mean: float  # fitted
    weights_bytes: float
    free_bytes: float

    @property
    def fitted_seconds(self) -> float:
        return float(self.fitted_seconds_L.sum())

    @property
    def held_out_seconds(self) -> float | None:
        return None if self.held_out_seconds_L is None else float(self.held_out_seconds_L.sum())


def chosen(curve: tuple[CurvePoint, ...]) -> CurvePoint:
    """The fewest replicas within TOLERANCE of the best fitted step.

    Held-out load has no say, so that it can judge the plan.
    """
    within = min(point.fitted_seconds for point in curve) * (1 + TOLERANCE)
    good = (point for point in curve if point.fitted_seconds <= within)
    return min(good, key=lambda point: point.redundant)


def levelled_off(curve: tuple[CurvePoint, ...]) -> bool:
    """Whether the last PATIENCE points gained nothing worth having on the best before them."""
    if len(curve) <= PATIENCE:
        return False
    before = min(point.fitted_seconds for point in curve[:-PATIENCE])
    return min(point.fitted_seconds for point in curve[-PATIENCE:]) > before * (1 - WORTH)
