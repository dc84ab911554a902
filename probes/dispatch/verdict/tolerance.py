"""How far a measurement may be from a prediction before the prediction is called wrong, and why so far."""

from dataclasses import dataclass

from planner.base import BadInput

# Of the law in an emulated cluster, before any calibration, where processes start up and pack: it is 1 to 7 %
# low there (docs/skew.md), and 6 to 13 % for node's combine, whose parts are added up on the way.
EMULATED, EMULATED_ON_THE_WAY = 0.12, 0.20
UNKNOWN = 0.25  # of constants whose error nobody has stated
OF_MEAN = 2.5  # 19 of 20 errors are within so many times their mean, where they scatter normally
OF_RATIO = 0.5  # of the law's error that is left in a ratio: both sides of it err alike
UNDECIDED = 0.35  # beyond it nothing is told: a quarter more or less would pass


@dataclass(frozen=True)
class LawError:
    """How far off the cost model itself may be."""

    share: float
    reason: str


@dataclass(frozen=True)
class Tolerance:
    """`share` of a prediction: the law's own error and the noise; or what a person asked for."""

    law: LawError
    noise: float  # of the median over the repeats
    repeats: int
    asked: float | None = None

    @property
    def share(self) -> float:
        return self.law.share + self.noise if self.asked is None else self.asked

    @property
    def decides(self) -> bool:
        return self.asked is not None or self.share <= UNDECIDED

    @property
    def reason(self) -> str:
        """
        >>> Tolerance(LawError(0.1, "stated for an emulated cluster"), 0.021, 5).reason
        '12.1 % = 10.0 % the law (stated for an emulated cluster) + 2.1 % noise of 5 repeats'
        """
        if self.asked is not None:
            return f"{self.share:.1%}, as asked".replace("%", " %")
        law = f"{self.law.share:.1%} the law ({self.law.reason})"
        if self.repeats == 1:
            return f"unknown = {law} + noise, which one repeat does not show".replace("%", " %")
        noise = f"{self.noise:.1%} noise of {self.repeats} repeats"
        return f"{self.share:.1%} = {law} + {noise}".replace("%", " %")


def measured_error(mean_error: float, reason: str) -> LawError:
    """From the mean error that the law had on measurements it was not fitted to."""
    return LawError(OF_MEAN * mean_error, f"{OF_MEAN:g} times its mean error of {mean_error:.1%}, {reason}")


def check_tolerance(asked: float | None) -> None:
    if asked is not None and not 0 < asked < 10:
        raise BadInput(f"--tolerance {asked}: give a share above 0, such as 0.1 for 10 %")
