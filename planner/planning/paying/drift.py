"""Drift: what a plan that is fitted to one window costs on the windows after it, and when a new one pays.

Shapes: W windows, K lags.
"""

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from planner.cost import Floats, cost, whole_step
from planner.planning.paying.series import Series
from planner.problem import Problem
from planner.solvers import find_method, in_expectation


@dataclass(frozen=True, eq=False)
class Drift:
    """By lag, in windows: a plan of one window judged on that window (lag 0) and on later ones.

    Means over all windows that have one so much later; every plan is the method `refine`'s.
    """

    max_over_mean_K: tuple[float, ...]
    seconds_K: tuple[float, ...]  # a step
    window_steps: float  # of one window, the mean

    @property
    def lags(self) -> int:
        """How many windows later the last is; 0 where there is one window."""
        return len(self.seconds_K) - 1

    def pays_after(self, rearranging_seconds: float) -> float | None:
        """Steps after which a new plan, fitted to the window before, has paid for its rearrangement.

        None where it has not within the windows; inf where a plan gets no worse with age.
        """
        lost = [seconds - self.seconds_K[1] for seconds in self.seconds_K[1:]] if self.lags else []
        if not lost or max(lost) <= 0:
            return inf if lost else None
        if rearranging_seconds <= 0:
            return self.window_steps
        sums = np.cumsum(lost) * self.window_steps
        paid = np.flatnonzero(sums >= rearranging_seconds)
        return float((paid[0] + 1) * self.window_steps) if len(paid) else None


def drift_of(problem: Problem, series: Series, engine: str | None = None) -> Drift:
    """Over every window, fitted or judged."""
    searched = in_expectation(problem)
    count = len(series.loads)
    seconds_WW = np.full((count, count), np.nan)
    balance_WW = np.full((count, count), np.nan)
    for fitted, load in enumerate(series.loads):
        placement = find_method("refine")(replace(searched, load=load), seed=0)
        for judged in range(fitted, count):
            found = cost(searched, placement, series.loads[judged])
            seconds_WW[fitted, judged] = whole_step(problem, found, engine).total_seconds
            balance_WW[fitted, judged] = found.max_over_mean
    return Drift(_by_lag(balance_WW), _by_lag(seconds_WW), float(series.steps_W.mean()))


def _by_lag(value_WW: Floats) -> tuple[float, ...]:
    return tuple(float(np.diagonal(value_WW, lag).mean()) for lag in range(len(value_WW)))
