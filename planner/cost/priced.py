"""What a step costs: seconds of each part and layer, and the figures of balance and traffic.

Shapes: L placed layers, G GPUs.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.cost.routing import Floats


class StepParts:
    """Seconds of the three parts of a step, per layer, predicted or bounded: what they come to together."""

    dispatch_seconds_L: Floats
    compute_seconds_L: Floats
    combine_seconds_L: Floats

    @property
    def layer_seconds_L(self) -> Floats:
        return self.dispatch_seconds_L + self.compute_seconds_L + self.combine_seconds_L

    @property
    def total_seconds(self) -> float:
        return float(self.layer_seconds_L.sum())


@dataclass(frozen=True, eq=False)
class Cost(StepParts):
    """What one placement costs on one load.

    Seconds are per layer and step; loads are assignments per step.
    """

    layer_ids: tuple[int, ...]
    load_LG: Floats
    dispatch_seconds_L: Floats
    compute_seconds_L: Floats
    combine_seconds_L: Floats
    bottleneck_L: tuple[str, ...]  # the resource that dispatch waits for, per layer
    cross_node_L: Floats  # share of assignments whose slot is on another node than their token
    silent_L: npt.NDArray[np.bool_]  # no assignment at all: taken as even, and no part of any balance figure
    speed_G: Floats | None = None  # beside the fastest GPU; None where all are alike

    @property
    def busy_LG(self) -> Floats:
        """Load that would keep the fastest GPU as busy: a GPU's load over its speed."""
        return self.load_LG if self.speed_G is None else np.asarray(self.load_LG / self.speed_G)

    @property
    def fair_L(self) -> Floats:
        """What every GPU's `busy_LG` would be in perfect balance: the mean, where all are alike."""
        if self.speed_G is None:
            return np.asarray(self.load_LG.mean(axis=1))
        return np.asarray(self.load_LG.sum(axis=1) / self.speed_G.sum())

    @property
    def max_over_mean_L(self) -> Floats:
        """The busiest GPU over perfect balance; 1 is perfect."""
        return np.asarray(self.busy_LG.max(axis=1) / self.fair_L)

    @property
    def balancedness_L(self) -> Floats:
        return 1.0 / self.max_over_mean_L

    @property
    def max_over_mean(self) -> float:
        """Sum over layers with a signal of the busiest GPU over the sum of perfect balances: what time
        follows.
        """
        told_L = np.ones_like(self.silent_L) if self.silent_L.all() else ~self.silent_L
        return float(self.busy_LG[told_L].max(axis=1).sum() / self.fair_L[told_L].sum())

    @property
    def cross_node_share(self) -> float:
        return float(self.cross_node_L.mean())

    @property
    def bottleneck(self) -> str:
        """The resource that costs the most dispatch time over all layers; ties by name."""
        seconds = dict.fromkeys(sorted(set(self.bottleneck_L)), 0.0)
        for name, layer_seconds in zip(self.bottleneck_L, self.dispatch_seconds_L, strict=True):
            seconds[name] += float(layer_seconds)
        return max(seconds, key=lambda name: seconds[name])
