"""Patterns of traffic sent in growing sizes, in a cluster of whose links nothing is known.

Shapes: G ranks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from probes.measure.fit import GOOD_ERROR, Fit, fit

if TYPE_CHECKING:  # torch comes with it
    from probes.ranks.wire import Wire

FIRST_BYTES, LONG_SECONDS = 16_384, 0.12  # of a pair, and of the last exchange of a pattern
SIZES, MOST_DOUBLINGS = 3, 24
FEWEST_ATTEMPTS, MOST_ATTEMPTS, STRAIGHT = 2, 5, GOOD_ERROR / 2
MOST_START = 0.05  # of the longest exchange that may be start-up: a bent line would make the link too fast


@dataclass(frozen=True)
class Observation:
    """A pattern took so many seconds more for each byte that every pair of it sent."""

    pattern: str
    seconds_per_byte: float
    error: float  # mean relative error of the line through its sizes


def observe(wire: "Wire", patterns: Mapping[str, npt.NDArray[np.float64]]) -> tuple[Observation, ...]:
    """One of each pattern, the same at every rank; called by all together."""
    observations = []
    for name, bytes_GG in patterns.items():
        wire.status.enter(f"traffic of {name}")
        observations.append(_observed(wire, name, bytes_GG))
    return tuple(observations)


def _observed(wire: "Wire", name: str, bytes_GG: npt.NDArray[np.float64]) -> Observation:
    """The quickest of a few attempts at each size: a busy machine makes links slow, and never fast."""
    from probes.emulation.timing import exchange_seconds

    size = FIRST_BYTES
    for _ in range(MOST_DOUBLINGS):
        if exchange_seconds(wire, bytes_GG * size) > LONG_SECONDS:
            break
        size *= 2
    size_S = np.array([size / 2**step for step in reversed(range(SIZES))])
    least_S, line = np.full(SIZES, np.inf), None
    for attempt in range(1, MOST_ATTEMPTS + 1):
        seconds_S = [exchange_seconds(wire, bytes_GG * one) for one in size_S.tolist()]
        least_S = np.minimum(least_S, seconds_S)
        line = _line(size_S, least_S, name)
        if line is not None and line.error <= STRAIGHT and attempt >= FEWEST_ATTEMPTS:
            break
    if line is None:
        raise BadInput(f"{name}: larger messages do not take longer; measure on a quiet machine")
    whole = float(least_S[-1] / size_S[-1])
    return Observation(name, max(1 / line.bytes_per_s, (1 - MOST_START) * whole), line.error)


def _line(size_S: npt.NDArray[np.float64], seconds_S: npt.NDArray[np.float64], name: str) -> Fit | None:
    try:
        return fit(size_S.tolist(), seconds_S.tolist(), name)
    except BadInput:  # larger messages did not take longer: the machine was elsewhere
        return None
