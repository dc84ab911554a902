"""Whether another plan pays: what it is expected to save over a horizon, against what the swap takes.

Hysteresis is what was learnt from swaps before: a load that goes back and forth breaks the promises that
were made on its last window, and new ones are believed as far as the old ones were kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.base import human_seconds
from planner.planning import WORTH_IT
from planner.watching.ledger import TAKEN, Swap

MARGIN = 2.0  # times what a swap takes that it must be expected to save
DOUBTED = 0.5  # promises kept to less than this share: plan for all windows, not for the newest load alone


@dataclass(frozen=True)
class Terms:
    """What is compared, as the person asked: how long a plan will hold, and what a swap takes.

    `stall_seconds` and `restart_seconds` are of one swap; None is as predicted, or no restart.
    """

    horizon_seconds: float = 3600.0
    stall_seconds: float | None = None
    stops: bool = True  # whether the server waits for the weights
    restart_seconds: float | None = None  # where the engine cannot swap while it serves
    least_gain: float = WORTH_IT  # share of a step


@dataclass(frozen=True)
class Verdict:
    """Seconds of a step and of a swap, and whether the one pays for the other."""

    step_seconds: float  # a whole step by the plan that runs
    saved_seconds: float  # a step, by the new plan, on assignments that it was not fitted to
    swap_seconds: float
    steps: float  # in the horizon
    trust: float  # share of earlier promises that was kept
    least_gain: float
    swap: str = ""  # what `swap_seconds` are of

    @property
    def gain(self) -> float:
        """Share of a whole step."""
        return self.saved_seconds / self.step_seconds

    @property
    def expected_seconds(self) -> float:
        """Saved over the horizon, as far as promises are believed."""
        return self.saved_seconds * self.steps * self.trust

    @property
    def pays(self) -> bool:
        return self.gain >= self.least_gain and self.expected_seconds > MARGIN * self.swap_seconds

    def text(self) -> str:
        """Why, in one line."""
        gain = f"{max(self.gain, 0):.2%} of a step of {human_seconds(self.step_seconds)}"
        if self.gain < self.least_gain:
            return f"the plan that runs holds: another saves {gain}, less than {self.least_gain:.1%}"
        believed = "" if self.trust == 1 else f", believed to {self.trust:.0%}"
        saves = (
            f"another plan saves {gain}, {human_seconds(self.expected_seconds)} over {self.steps:,.0f} steps"
        )
        beside = f"{saves}{believed}; the swap takes {human_seconds(self.swap_seconds)}{self._of()}"
        return f"re-planning pays: {beside}" if self.pays else f"re-planning does not pay: {beside}"

    def _of(self) -> str:
        return f" ({self.swap})" if self.swap else ""


def trust(swaps: Sequence[Swap], oldest: int, promised: float) -> float:
    """Share of promises that swaps kept which still have windows in the rolling window, from 0 to 1.

    The promise now counts as one that was kept, so that one disappointment does not end everything.
    """
    heard = [swap for swap in swaps if swap.state == TAKEN and swap.after >= oldest]
    given = promised + sum(swap.promised for swap in heard)
    kept = promised + sum(min(swap.kept, swap.promised) for swap in heard)
    return min(max(kept / given, 0.0), 1.0) if given > 0 else 1.0
