"""What was measured beside what was predicted: of one layer and phase, and of a phase over all layers.

Shapes: N repeats.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from probes.dispatch.timed import Floats, Timed
from probes.dispatch.verdict.scene import spread_of


@dataclass(frozen=True)
class Figures:
    """Seconds of the slowest rank over the repeats, and what was predicted by expectation and by bytes."""

    median: float
    p95: float
    spread: float  # (p95 - p5) / median
    modelled: float
    drawn: float

    @property
    def error(self) -> float:
        """Of the prediction from the bytes that were sent: above 0 it is too high."""
        return self.drawn / self.median - 1

    @property
    def modelled_error(self) -> float:
        return self.modelled / self.median - 1


@dataclass(frozen=True)
class PhaseFigures:
    """One phase of one side: all layers together, and the mean error of the layers one by one."""

    side: str
    phase: str
    whole: Figures
    mape: float  # mean of |error| over the layers
    bias: float  # mean of error
    modelled_mape: float
    modelled_bias: float


def of_layer(timed: Timed, phase: str) -> Figures:
    expected = timed.expected
    return _figures(timed.slowest_N(phase), expected.modelled[phase], expected.drawn[phase])


def of_phase(timed: Sequence[Timed], phase: str) -> PhaseFigures:
    """All layers of one side."""
    every = [of_layer(one, phase) for one in timed]
    errors = np.array([[one.error, one.modelled_error] for one in every])
    (mape, modelled_mape), (bias, modelled_bias) = np.abs(errors).mean(axis=0), errors.mean(axis=0)
    whole = _figures(
        seconds_N(timed, (phase,)),
        sum(one.expected.modelled[phase] for one in timed),
        sum(one.expected.drawn[phase] for one in timed),
    )
    return PhaseFigures(
        timed[0].side, phase, whole, float(mape), float(bias), float(modelled_mape), float(modelled_bias)
    )


def seconds_N(timed: Sequence[Timed], phases: Sequence[str]) -> Floats:
    """The slowest ranks' seconds of each repeat, all layers and phases together."""
    total_N: Floats = np.sum([one.slowest_N(phase) for one in timed for phase in phases], axis=0)
    return total_N


def _figures(slowest_N: Floats, modelled: float, drawn: float) -> Figures:
    return Figures(
        float(np.median(slowest_N)),
        float(np.quantile(slowest_N, 0.95)),
        spread_of(slowest_N),
        float(modelled),
        float(drawn),
    )
