"""The line behind settings: start-up, and seconds of the slowest resource over its tier's efficiency. Pure.

Which tier a setting waits for follows from the efficiencies, and they from that: both are found in turn,
from several starts, by re-weighted least squares; the line with the least mean relative error is taken.

Shapes: N settings, T tiers, F figures of a line.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.fitting import mean_error, positive_fit, relative_weight_N

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

FEWEST_WAITS = 3  # settings that wait for a tier, before it is fitted
_ROUNDS = 60
_KEPT = 4  # lines of a search that goes back and forth between two
_STILL = 1e-6
_START_SHARES = (0.0, 0.25, 0.5, 0.75, 0.95)  # of the quickest setting, that may be start-up
_NEARLY_ALL = 0.1
_AS_LONG = 0.99
_AS_GOOD = 1.25  # times the least error: lines that settings hardly tell apart
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Line:
    """seconds = start + max over tiers of inverse · the tier's slowest resource."""

    start: float
    inverse_T: Floats  # 1 / efficiency
    known_T: Bools  # what settings say of it; of other tiers it is what it was before

    def seconds_N(self, worst_NT: Floats) -> Floats:
        return np.asarray(self.start + (worst_NT * self.inverse_T).max(axis=1))

    def waits_NT(self, worst_NT: Floats) -> Bools:
        """Which settings wait for which tier; for several where those take as long."""
        seconds_NT = worst_NT * self.inverse_T
        most_N1 = seconds_NT.max(axis=1, keepdims=True)
        return np.asarray((seconds_NT >= _AS_LONG * most_N1) & (most_N1 > 0))


def line_of(worst_NT: Floats, seconds_N: Floats, inverse_T: Floats, what: str) -> Line:
    """The best of the lines that the search finds from several starts.

    Where tiers are loaded alike, lines through one or the other are about as good: of those the one nearest
    to `inverse_T`, what was thought before; then the first. BadInput where there is no line.
    """

    def error(line: Line) -> float:
        return mean_error(line.seconds_N(worst_NT), seconds_N)

    starts = [inverse_T]
    starts += [_most_T(worst_NT, seconds_N, share * float(seconds_N.min())) for share in _START_SHARES]
    searched = [_search(worst_NT, seconds_N, start, inverse_T) for start in starts]
    found = [min(lines, key=error) for lines in searched if lines]
    if not found:
        none = "more bytes do not take longer, so no efficiency follows; send larger messages"
        raise BadInput(f"{what}: {none}")
    good = _AS_GOOD * min(map(error, found)) + _ROUNDING
    return min(
        (line for line in found if error(line) <= good),
        key=lambda line: float(np.abs(np.log(line.inverse_T / inverse_T)).max().round(3)),
    )


def _most_T(worst_NT: Floats, seconds_N: Floats, start: float) -> Floats:
    """The most that 1 / efficiency can be: no tier takes longer than nearly all settings it is part of."""
    left_N1 = (seconds_N - start)[:, None]
    most_NT = np.divide(left_N1, worst_NT, out=np.full_like(worst_NT, np.inf), where=worst_NT > 0)
    most_T = np.quantile(most_NT, _NEARLY_ALL, axis=0, method="lower")
    return np.asarray(np.clip(most_T, 1e-9, 1e9))


def _search(worst_NT: Floats, seconds_N: Floats, start_T: Floats, inverse_T: Floats) -> list[Line]:
    """In turn: which tier each setting waits for, and a step towards the line through those. The last lines.

    A tier that too few settings wait for is what it was thought to be, or as much faster as settings say.
    """
    found: list[Line] = []
    now_T, weight_N = start_T, 1 / seconds_N
    idle_N = worst_NT.max(axis=1) == 0
    for _ in range(_ROUNDS):
        waits_N = (worst_NT * now_T).argmax(axis=1)
        waits_NT = (waits_N[:, None] == np.arange(len(now_T))) & ~idle_N[:, None]
        seen_T = waits_NT.sum(axis=0) >= FEWEST_WAITS
        if not seen_T.any():
            break
        used_N = waits_NT[:, seen_T].any(axis=1) | idle_N
        columns_NF = np.concatenate([np.ones((len(seconds_N), 1)), (worst_NT * waits_NT)[:, seen_T]], axis=1)
        figures_F = _step(columns_NF[used_N], seconds_N[used_N], weight_N[used_N])
        if not (figures_F[1:] > 0).all():
            break
        next_T = np.minimum(inverse_T, _most_T(worst_NT, seconds_N, float(figures_F[0])))
        faster_T = next_T < inverse_T
        next_T[seen_T] = figures_F[1:]
        line = Line(float(figures_F[0]), next_T, seen_T | faster_T)
        still = bool(found) and abs(line.start - found[-1].start) <= _STILL * seconds_N.min()
        found.append(line)
        if still and np.allclose(next_T, now_T, rtol=_STILL, atol=0):
            break
        now_T, weight_N = next_T, relative_weight_N(line.seconds_N(worst_NT), seconds_N)
    return found[-_KEPT:]


def _step(columns_NF: Floats, seconds_N: Floats, weight_N: Floats) -> Floats:
    scale_F = np.maximum(columns_NF.max(axis=0), 1e-300)
    return np.asarray(positive_fit(columns_NF / scale_F * weight_N[:, None], seconds_N * weight_N) / scale_F)
