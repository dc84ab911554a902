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

FIRST_BYTES, LONG_SECONDS = 16_384, 0.15  # of a pair, and of the last exchange of a pattern
SIZES, ATTEMPTS, MOST_DOUBLINGS = 3, 3, 24


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
        line = _line(wire, name, bytes_GG)
        observations.append(Observation(name, 1 / line.bytes_per_s, line.error))
    return tuple(observations)


def _line(wire: "Wire", name: str, bytes_GG: npt.NDArray[np.float64]) -> Fit:
    """The straightest of a few attempts: a busy machine bends one, a link's rate stays."""
    from probes.emulation.timing import exchange_seconds

    lines: list[Fit] = []
    size, attempts = FIRST_BYTES, 0
    for _ in range(MOST_DOUBLINGS):
        if exchange_seconds(wire, bytes_GG * size) > LONG_SECONDS:
            break
        size *= 2
    sizes = [size / 2**step for step in reversed(range(SIZES))]
    while attempts < ATTEMPTS and not any(line.error <= GOOD_ERROR / 2 for line in lines):
        attempts += 1
        seconds = [exchange_seconds(wire, bytes_GG * one) for one in sizes]
        try:
            lines.append(fit(sizes, seconds, name))
        except BadInput:  # larger messages did not take longer: the machine was elsewhere
            continue
    if not lines:
        raise BadInput(f"{name}: no rate follows from {attempts} attempts; measure on a quiet machine")
    return min(lines, key=lambda line: line.error)
