"""Errors that are left after calibration, on loads that the fit had not seen. Pure.

One fit for a transport and a phase, over all machines: their links are made alike.

Shapes: R resources.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.base import BadInput
from probes.calibration.fit import Setting, fit
from probes.dispatch.timed import EXCHANGES, Floats, Timed
from probes.skew.measured import Measured
from probes.skew.shapes import shape

TIERS = ("nvlink", "nic", "leaf")
AS_THEY_ARE = dict.fromkeys(TIERS, 1.0)  # rates are as shaped, so all of them is what was thought before


@dataclass(frozen=True)
class Calibrated:
    """`error`: mean relative error on loads left out; None, with the reason in `said`, where no line fits."""

    transport: str
    phase: str
    settings: int
    error: float | None
    said: str


def calibrated(found: Sequence[Measured]) -> list[Calibrated]:
    """Every transport and phase."""
    return [
        _calibrated(transport, phase, [one for one in found if one.transport == transport])
        for transport in dict.fromkeys(one.transport for one in found)
        for phase in EXCHANGES
    ]


def mean_error(found: Iterable[Calibrated]) -> float | None:
    """Over all settings; None where one of them could not be calibrated."""
    total = count = 0.0
    for one in found:
        if one.error is None:
            return None
        total, count = total + one.error * one.settings, count + one.settings
    return total / count


def _calibrated(transport: str, phase: str, found: Sequence[Measured]) -> Calibrated:
    settings = [
        Setting(
            timed.side,
            f"{one.settings[timed.row]} on {one.shape}",
            timed.seconds(phase),
            _slowest_of_tiers(one.shape, timed, phase),
        )
        for one in found
        for timed in one.timed
    ]
    try:
        fitted = fit(settings, TIERS, AS_THEY_ARE, f"{transport} {phase}")
    except BadInput as error:
        return Calibrated(transport, phase, len(settings), None, str(error))
    reached = ", ".join(f"{one.efficiency:.1%} of {one.tier}" for one in fitted.reached)
    said = f"start-up {fitted.start_seconds * 1e3:.1f} ms, {reached}"
    return Calibrated(transport, phase, len(settings), fitted.held_out_error, said)


def _slowest_of_tiers(name: str, timed: Timed, phase: str) -> Floats:
    """Seconds of the busiest resource of each tier, by the bytes that were drawn."""
    tier_R = np.array([one.tier for one in shape(name).resources])
    seconds_R = timed.expected.drawn_R[phase]
    return np.array([seconds_R[tier_R == tier].max(initial=0.0) for tier in TIERS])
