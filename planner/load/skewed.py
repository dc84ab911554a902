"""Loads made for benchmarks: shares of experts whose busiest one is a stated multiple of the mean.

Shapes: E experts.
"""

from collections.abc import Collection
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
BISECTIONS = 60  # halvings: more than a float64 can tell apart


def lognormal_shares(experts: int, max_over_mean: float, order_E: npt.NDArray[np.int64]) -> Floats:
    """share_E: quantiles of a lognormal distribution, so wide that the largest is that multiple of the mean.

    Rank counts of real routing are closest to it of the usual distributions (DeepEP PR #393). `order_E` says
    which expert is how popular, the least popular first.

    >>> lognormal_shares(4, 2.0, np.arange(4)).round(3).tolist()
    [0.082, 0.158, 0.26, 0.5]
    """
    _check(experts, max_over_mean)
    quantile_E = np.array([NormalDist().inv_cdf((place + 0.5) / experts) for place in range(experts)])

    def shares(sigma: float) -> Floats:
        popular_E = np.exp(sigma * (quantile_E - quantile_E[-1]))
        return np.asarray(popular_E / popular_E.sum())

    low, high = 0.0, 1.0
    while high < 2**BISECTIONS and shares(high)[-1] * experts < max_over_mean:
        high *= 2
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if shares(middle)[-1] * experts < max_over_mean else (low, middle)
    share_E = np.empty(experts)
    share_E[order_E] = shares(high)
    return share_E


def hot_shares(experts: int, hot: Collection[int], max_over_mean: float) -> Floats:
    """share_E: each hot expert has that multiple of the mean, the others share the rest alike.

    >>> hot_shares(4, [1], 2.5).tolist()
    [0.125, 0.625, 0.125, 0.125]
    """
    _check(experts, max_over_mean)
    hot_E = np.isin(np.arange(experts), list(hot))
    taken, others = hot_E.sum() * max_over_mean / experts, int((~hot_E).sum())
    if taken > 1 or not others:
        asked = f"{hot_E.sum()} of {experts} experts"
        raise ValueError(f"{asked} cannot each have {max_over_mean:g} times the mean beside others")
    return np.where(hot_E, max_over_mean / experts, (1 - taken) / others)


def _check(experts: int, max_over_mean: float) -> None:
    if not 1 <= max_over_mean <= experts:
        most = f"of {experts} experts the busiest has 1 to {experts} times the mean"
        raise ValueError(f"{most}, not {max_over_mean:g}")
