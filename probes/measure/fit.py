"""Start-up and rate from a sweep of sizes: seconds = α + bytes / β. Pure NumPy.

Fitted by robust least squares of relative errors. Collectives change their protocol with size, so that one
line seldom holds from 8 B to 8 GB. What a plan needs is the rate of large messages: the smallest sizes are
left out, one by one, until the rest lies on a line to `GOOD_ERROR`, and the fit says from which size on it
holds.

Shapes: S sizes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, human_bandwidth, human_bytes, human_seconds
from probes.base.facts import MeasureFacts
from probes.measure.busbw import out_of_place

FEWEST_SIZES = 3
GOOD_ERROR = 0.05
POOREST_FIT = 0.15  # mean error of sizes left out, beyond which a line says nothing about the link
_HUBER = 1.345  # of the residuals' scale: 95 % of least squares' precision where the errors are normal
_ROUNDS = 30

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """seconds = alpha_seconds + bytes / bytes_per_s, for sizes of `from_bytes` to `to_bytes`."""

    alpha_seconds: float
    bytes_per_s: float
    error: float  # mean absolute relative error over the sizes that were fitted
    held_out_error: float  # the same for each of those sizes, predicted from the others
    sizes: int
    dropped: int  # smaller sizes that lie off the line
    from_bytes: float
    to_bytes: float

    def seconds(self, size_bytes: float) -> float:
        return self.alpha_seconds + size_bytes / self.bytes_per_s

    @property
    def text(self) -> str:
        span = f"{human_bytes(self.from_bytes)} to {human_bytes(self.to_bytes)}"
        rate, start = human_bandwidth(self.bytes_per_s), human_seconds(self.alpha_seconds)
        errors = f"mean error {self.error:.1%}, {self.held_out_error:.1%} for a size that was left out"
        return f"{rate} after {start}, {self.sizes} sizes of {span}, {errors}"


def fit(sizes: Sequence[float], seconds: Sequence[float], source: str) -> Fit:
    """The line through a sweep; a size that was measured several times counts with its median.

    BadInput for fewer than three sizes, or no line in them.
    """
    size_S, seconds_S = _medians(sizes, seconds)
    if len(size_S) < FEWEST_SIZES:
        few = f"start-up and rate need at least {FEWEST_SIZES} sizes, it has {len(size_S)}"
        raise BadInput(f"{source}: {few}; measure a sweep like -b 8M -e 256M -f 2")
    start = 0
    while _error(size_S[start:], seconds_S[start:]) > GOOD_ERROR and len(size_S) - start > FEWEST_SIZES:
        start += 1
    size_S, seconds_S = size_S[start:], seconds_S[start:]
    alpha, slope = _line(size_S, seconds_S)
    if not slope > 0:
        flat = "larger messages do not take longer in it, so no rate follows"
        raise BadInput(f"{source}: {flat}; measure larger sizes")
    error, held_out = _error(size_S, seconds_S), _held_out_error(size_S, seconds_S)
    return Fit(alpha, 1 / slope, error, held_out, len(size_S), start, float(size_S[0]), float(size_S[-1]))


def _medians(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[Floats, Floats]:
    """size_S and seconds_S, by size."""
    seconds_of: dict[float, list[float]] = {}
    for size, taken in zip(sizes, seconds, strict=True):
        if size > 0 and taken > 0:
            seconds_of.setdefault(float(size), []).append(float(taken))
    size_S = np.array(sorted(seconds_of))
    return size_S, np.array([np.median(seconds_of[size]) for size in size_S.tolist()])


def fit_facts(facts: MeasureFacts, share: float = 1.0) -> Fit:
    """The line of a benchmark's out-of-place rows, with bytes = size · `share`.

    That is 1 for the collective's own size, a host share for what crossed a link.
    """
    samples = out_of_place(facts)
    sizes = [sample.size_bytes * share for sample in samples]
    return fit(sizes, [sample.seconds for sample in samples], facts.source)


def _line(size_S: Floats, seconds_S: Floats) -> tuple[float, float]:
    """α in seconds and slope in seconds a byte, neither negative.

    Huber's weights on relative residuals, found by iteration.
    """
    design_S2 = np.stack([np.ones_like(size_S), size_S], axis=1) / seconds_S[:, None]
    scale_2 = np.abs(design_S2).max(axis=0)
    weight_S = np.ones_like(size_S)
    alpha = slope = 0.0
    for _ in range(_ROUNDS):
        root_S1 = np.sqrt(weight_S)[:, None]
        solution_2 = np.linalg.lstsq(design_S2 / scale_2 * root_S1, root_S1[:, 0], rcond=None)[0] / scale_2
        alpha, slope = map(float, solution_2)
        if alpha < 0:
            alpha = 0.0
            slope = float((weight_S * design_S2[:, 1]).sum() / (weight_S * design_S2[:, 1] ** 2).sum())
        before_S, weight_S = weight_S, _weights_S(np.abs(design_S2 @ np.array([alpha, slope]) - 1))
        if np.allclose(before_S, weight_S, atol=1e-6):
            break
    return alpha, slope


def _weights_S(residual_S: Floats) -> Floats:
    """1 within Huber's bound of the residuals' spread, less the further beyond it."""
    spread = 1.4826 * float(np.median(residual_S))
    if not spread > 1e-9:
        return np.ones_like(residual_S)
    return np.minimum(1.0, _HUBER * spread / np.maximum(residual_S, 1e-12))


def _error(size_S: Floats, seconds_S: Floats) -> float:
    alpha, slope = _line(size_S, seconds_S)
    return float(np.abs((alpha + slope * size_S) / seconds_S - 1).mean())


def _held_out_error(size_S: Floats, seconds_S: Floats) -> float:
    errors = []
    for left_out in range(len(size_S)):
        alpha, slope = _line(np.delete(size_S, left_out), np.delete(seconds_S, left_out))
        errors.append(abs((alpha + slope * size_S[left_out]) / seconds_S[left_out] - 1))
    return float(np.mean(errors))
