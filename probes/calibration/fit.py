"""Start-up and efficiency by tier, fitted to settings that were run. Pure.

    seconds = start + max over resources of (bytes / rate) / efficiency of the resource's tier

Fitted so that the mean relative error is least: a setting that a busy machine spoilt has little say. A tier
that settings did not wait for is not fitted: it keeps the efficiency it had. Judged on settings that the fit
had not seen: each placement left out in turn, and each load; the larger of both errors counts.

Shapes: N settings, R resources, T tiers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.fitting import held_out_N, mean_error
from planner.topology import HIGHEST_EFFICIENCY, Reached
from probes.calibration.line import Line, line_of

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

FEWEST_SETTINGS = 6
FEWEST_LEFT_OUT = 3  # placements, or loads: with two, each would be judged by the other alone
LEAST_SPREAD = 1.5  # most over least bytes: nearer together start-up and efficiency cannot be told apart
POOREST_FIT = 0.25  # mean error of what was left out, beyond which the figures say nothing


@dataclass(frozen=True, eq=False)
class Setting:
    """A layer under a placement on a load: what it took, and what its bytes take at the stated rates."""

    placement: str
    load: str
    seconds: float
    seconds_R: Floats  # bytes over rate


@dataclass(frozen=True, eq=False)
class Fitted:
    """Errors are mean relative errors; by what was left out, for that of which there was enough."""

    start_seconds: float
    reached: tuple[Reached, ...]
    unseen: tuple[str, ...]  # tiers that the machine has and settings did not wait for
    settings: int
    error: float
    left_out: Mapping[str, float]  # placement, load

    @property
    def held_out_error(self) -> float:
        return max(self.left_out.values())


def fit(settings: Sequence[Setting], tier_R: Sequence[str], prior: Mapping[str, float], what: str) -> Fitted:
    """`prior`: the efficiency of each tier before; `what`: named in what is refused, 'slot dispatch'.

    BadInput where there are too few settings, or no such line in them.
    """
    tiers = tuple(dict.fromkeys(tier_R))
    seconds_N = np.array([one.seconds for one in settings])
    worst_NT = _worst_NT(settings, tier_R, tiers)
    _check(settings, worst_NT, what)
    inverse_T = np.array([1 / prior[tier] for tier in tiers])
    line = line_of(worst_NT, seconds_N, inverse_T, what)
    for tier, inverse in zip(tiers, line.inverse_T.tolist(), strict=True):
        if inverse * HIGHEST_EFFICIENCY < 1:
            faster = f"messages go {1 / inverse:.1f} times as fast as the {tier} links are said to"
            raise BadInput(f"{what}: {faster}; this topology is not the machine that ran")
    left_out = _left_out(settings, seconds_N, worst_NT, inverse_T, what)
    found = Fitted(
        line.start,
        _reached(line, worst_NT, tiers),
        tuple(tier for tier, known in zip(tiers, line.known_T, strict=True) if not known),
        len(settings),
        mean_error(line.seconds_N(worst_NT), seconds_N),
        left_out,
    )
    if found.held_out_error > POOREST_FIT:
        off = f"settings that were left out are {found.held_out_error:.0%} off on average"
        raise BadInput(
            f"{what}: no line goes through its settings ({off}); run on a quiet machine, longer phases"
        )
    return found


def _check(settings: Sequence[Setting], worst_NT: Floats, what: str) -> None:
    if len(settings) < FEWEST_SETTINGS:
        raise BadInput(f"{what}: {len(settings)} settings were run, a fit needs {FEWEST_SETTINGS}")
    bad = [one for one in settings if not 0 < one.seconds < np.inf]
    if bad:
        where = f"{bad[0].placement} on {bad[0].load}"
        raise BadInput(f"{what}: {where} took {bad[0].seconds} s; measure it again")
    if not any(_counts(settings, of) for of in ("placement", "load")):
        few = f"fewer than {FEWEST_LEFT_OUT} placements and fewer than {FEWEST_LEFT_OUT} loads"
        raise BadInput(f"{what}: {few} were run; a fit is judged on those it has not seen")
    busy_N = worst_NT.max(axis=1)
    if not busy_N.max() > LEAST_SPREAD * busy_N.min():
        alike = "all settings send nearly as many bytes, so start-up and efficiency cannot be told apart"
        raise BadInput(f"{what}: {alike}; run with several numbers of tokens")


def _counts(settings: Sequence[Setting], of: str) -> bool:
    return len({getattr(one, of) for one in settings}) >= FEWEST_LEFT_OUT


def _worst_NT(settings: Sequence[Setting], tier_R: Sequence[str], tiers: Sequence[str]) -> Floats:
    """Seconds of the slowest resource of each tier."""
    of_tier = [np.array([tier == name for name in tier_R]) for tier in tiers]
    return np.array([[one.seconds_R[these].max() for these in of_tier] for one in settings])


def _left_out(
    settings: Sequence[Setting], seconds_N: Floats, worst_NT: Floats, inverse_T: Floats, what: str
) -> dict[str, float]:
    """Mean error on settings by fits that have not seen their placement, and their load."""

    def without(seen_N: Bools) -> Line:
        return line_of(worst_NT[seen_N], seconds_N[seen_N], inverse_T, f"{what}, some settings left out")

    found = {}
    for of in ("placement", "load"):
        if _counts(settings, of):
            number = {
                name: at for at, name in enumerate(dict.fromkeys(getattr(one, of) for one in settings), 1)
            }
            group_N = np.array([float(number[getattr(one, of)]) for one in settings])
            predicted_N = held_out_N(group_N, without, lambda line: line.seconds_N(worst_NT))
            found[of] = mean_error(predicted_N, seconds_N)
    return found


def _reached(line: Line, worst_NT: Floats, tiers: Sequence[str]) -> tuple[Reached, ...]:
    """What settings say of each tier, and how many of them wait for it."""
    waits_T = line.waits_NT(worst_NT).sum(axis=0)
    return tuple(
        Reached(tier, float(1 / line.inverse_T[at]), int(waits_T[at]))
        for at, tier in enumerate(tiers)
        if line.known_T[at]
    )
