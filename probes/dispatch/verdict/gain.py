"""What a plan gains over another placement: measured, pair by pair of repeats, beside what was promised.

Shapes: L layers, N repeats, B resamples.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from probes.dispatch.timed import Floats, Timed
from probes.dispatch.verdict.tolerance import OF_RATIO, LawError

RESAMPLES = 2000
CERTAIN = 0.95
LEAST_SAMPLING = 0.03  # granted to a single layer, whose draws cannot be held against others


@dataclass(frozen=True)
class Gain:
    """Seconds of the plan as a share of the other side's, over all layers: below 1 the plan gains.

    `low` and `high`: 95 % of what chance between the repeats may have made of it. `drawn`: promised by the
    very bytes that were sent.
    """

    against: str
    phases: tuple[str, ...]
    measured: float
    low: float
    high: float
    promised: float
    drawn: float
    tolerance: float  # of the ratio, absolute

    @property
    def name(self) -> str:
        return " and ".join(self.phases)

    @property
    def state(self) -> str:
        """none: no gain was promised; untold: one too small to be seen here; kept; or missed."""
        if self.promised >= 1:
            return "none"
        if 1 - self.promised <= self.tolerance:
            return "untold"
        return "kept" if self.measured <= self.promised + self.tolerance else "missed"

    @property
    def in_bytes(self) -> bool:
        """Whether the bytes that were sent hold the promised gain; where not, no link is to blame."""
        return self.drawn <= self.promised + self.tolerance


def judge_gain(
    plan: Sequence[Timed], other: Sequence[Timed], phases: Sequence[str], law: LawError, asked: float | None
) -> Gain:
    """Both sides have the same rows, in the same order."""
    measured, low, high = _measured(plan, other, phases)
    promised, drawn = (_promised(plan, other, phases, by) for by in ("modelled", "drawn"))
    noise = float(np.log(high / low)) / 2 if low > 0 and np.isfinite(high) else np.inf
    share = OF_RATIO * law.share + noise + _sampling(plan, other, phases) if asked is None else asked
    return Gain(other[0].side, tuple(phases), measured, low, high, promised, drawn, float(share * promised))


def _measured(
    plan: Sequence[Timed], other: Sequence[Timed], phases: Sequence[str]
) -> tuple[float, float, float]:
    """The ratio, and its interval by drawing repeats anew: each with both of its sides, as they ran."""
    plan_LN, other_LN = _seconds_LN(plan, phases), _seconds_LN(other, phases)
    layers, repeats = plan_LN.shape
    ratio = float(np.median(plan_LN.sum(axis=0)) / np.median(other_LN.sum(axis=0)))
    if repeats == 1:
        return ratio, 0.0, float("inf")
    rng = np.random.default_rng(0)
    layer_L = np.arange(layers)[None, :, None]
    drawn_BLN = rng.integers(0, repeats, (RESAMPLES, layers, repeats))
    plan_B, other_B = (
        np.median(side_LN[layer_L, drawn_BLN].sum(axis=1), axis=1) for side_LN in (plan_LN, other_LN)
    )
    tail = (1 - CERTAIN) / 2
    low, high = np.quantile(np.log(plan_B / other_B), (tail, 1 - tail)) - np.log(ratio)
    wider = np.sqrt(repeats / (repeats - 1))  # resamples scatter less than what they are drawn from
    return ratio, ratio * float(np.exp(low * wider)), ratio * float(np.exp(high * wider))


def _seconds_LN(timed: Sequence[Timed], phases: Sequence[str]) -> Floats:
    return np.array([np.sum([one.slowest_N(phase) for phase in phases], axis=0) for one in timed])


def _promised(plan: Sequence[Timed], other: Sequence[Timed], phases: Sequence[str], by: str) -> float:
    mine, others = (
        sum(getattr(one.expected, by)[phase] for one in side for phase in phases) for side in (plan, other)
    )
    return float(mine / others)


def _sampling(plan: Sequence[Timed], other: Sequence[Timed], phases: Sequence[str]) -> float:
    """What the draw of tokens may have changed: as much as it did, and no more than chance between layers."""
    changes_L = np.array(
        [
            np.log(_promised([a], [b], phases, "drawn") / _promised([a], [b], phases, "modelled"))
            for a, b in zip(plan, other, strict=True)
        ]
    )
    scatter = float(changes_L.std(ddof=1)) / np.sqrt(len(changes_L)) if len(changes_L) > 1 else 0.0
    return min(abs(float(changes_L.mean())), max(2.5 * float(scatter), LEAST_SAMPLING))
