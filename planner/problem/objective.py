"""Objective: one number a layer from the seconds that a placement takes in each window of a load.

It may look at each domain of the load apart.

Shapes: W windows, L layers.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.base import BadInput

Floats = npt.NDArray[np.float64]

FORMS = "mean, worst or risk:Z (the mean plus Z standard deviations, like risk:1)"


@dataclass(frozen=True)
class Objective:
    """What a plan is to make small.

    `robust`: the worst domain counts, each by the same law over its own windows.

    >>> Objective("risk", 2.0).seconds_L(np.array([[1.0], [3.0]]), (1, 1), ("", "")).tolist()
    [4.0]
    """

    kind: str = "mean"  # over windows: mean, worst, or risk, which is mean + z · standard deviation
    z: float = 0.0
    robust: bool = False

    def __post_init__(self) -> None:
        if self.kind not in ("mean", "worst", "risk"):
            raise BadInput(f"objective {self.kind!r} is unknown; it is {FORMS}")
        if not (math.isfinite(self.z) and self.z >= 0) or (self.z > 0) != (self.kind == "risk"):
            raise BadInput(
                f"objective {self.kind} has the factor {self.z}; "
                "risk needs one above 0, like risk:1, and the others have none"
            )

    @property
    def text(self) -> str:
        """As `--objective` takes it."""
        return f"risk:{self.z:g}" if self.kind == "risk" else self.kind

    def seconds_L(self, seconds_WL: Floats, weight_W: tuple[int, ...], domain_W: tuple[str, ...]) -> Floats:
        """The number to make small.

        `weight_W`: how many windows of the load each row stands for; it matters for mean and risk.
        """
        weights_W = np.array(weight_W, dtype=np.float64)
        if not self.robust:
            return self._over_windows(seconds_WL, weights_W)
        inside = [np.array(domain_W) == name for name in dict.fromkeys(domain_W)]
        by_domain = [self._over_windows(seconds_WL[rows_W], weights_W[rows_W]) for rows_W in inside]
        return np.asarray(np.max(by_domain, axis=0))

    def _over_windows(self, seconds_WL: Floats, weight_W: Floats) -> Floats:
        if self.kind == "worst":
            return np.asarray(seconds_WL.max(axis=0))
        mean_L = np.average(seconds_WL, axis=0, weights=weight_W)
        if self.kind == "mean":
            return np.asarray(mean_L)
        variance_L = np.average((seconds_WL - mean_L) ** 2, axis=0, weights=weight_W)
        return np.asarray(mean_L + self.z * np.sqrt(variance_L))


MEAN = Objective()


def parse_objective(text: str, *, robust: bool = False) -> Objective:
    """
    >>> parse_objective("risk:0.5")
    Objective(kind='risk', z=0.5, robust=False)
    """
    kind, colon, factor = text.partition(":")
    if kind not in ("mean", "worst", "risk") or bool(colon) != (kind == "risk"):
        raise BadInput(f"--objective {text!r}: give {FORMS}")
    try:
        z = float(factor) if colon else 0.0
    except ValueError:
        raise BadInput(f"--objective {text!r}: {factor!r} is not a number; write it like risk:1") from None
    return Objective(kind, z, robust)
