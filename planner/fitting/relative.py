"""Linear forms fitted so that the mean relative error is small, and what they miss on rows left out.

Shapes: N rows, F figures (columns of the form).
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Fit = TypeVar("Fit")

ROUNDS = 30  # of re-weighing; the figures stand still long before
NEAR = 0.01  # rows that are nearer than 1 % count alike, or the nearest would decide alone


def relative_fit(columns_NF: Floats, seconds_N: Floats) -> Floats:
    """figures_F >= 0 with the least mean of |columns · figures - seconds| / seconds.

    By re-weighted least squares: a row's weight is one over its seconds and over the root of its error.
    """
    scale_F = np.maximum(np.abs(columns_NF).max(axis=0), 1e-300)
    weight_N, figures_F = 1 / seconds_N, np.zeros(columns_NF.shape[1])
    for _ in range(ROUNDS):
        figures_F = positive_fit(columns_NF / scale_F * weight_N[:, None], seconds_N * weight_N)
        weight_N = relative_weight_N(columns_NF / scale_F @ figures_F, seconds_N)
    return np.asarray(figures_F / scale_F)


def relative_weight_N(predicted_N: Floats, seconds_N: Floats) -> Floats:
    """Weights under which least squares are the least mean relative error, once the figures stand still."""
    error_N = np.abs(predicted_N - seconds_N) / seconds_N
    return np.asarray(1 / seconds_N / np.sqrt(np.maximum(error_N, NEAR)))


def positive_fit(columns_NF: Floats, goal_N: Floats) -> Floats:
    """Least squares; what would be negative is dropped, the worst first."""
    kept = list(range(columns_NF.shape[1]))
    products_FF, goal_F = columns_NF.T @ columns_NF, columns_NF.T @ goal_N
    while True:
        found = np.linalg.lstsq(products_FF[np.ix_(kept, kept)], goal_F[kept], rcond=None)[0]
        low = [(value, at) for value, at in zip(found, kept, strict=True) if value < 0]
        if not low:
            break
        kept.remove(min(low)[1])
    figures_F = np.zeros(columns_NF.shape[1])
    figures_F[kept] = found
    return figures_F


def mean_error(predicted_N: Floats, seconds_N: Floats) -> float:
    return float(np.mean(np.abs(predicted_N - seconds_N) / seconds_N))


def held_out_N(group_N: Floats, fit: Callable[[Bools], Fit], predict: Callable[[Fit], Floats]) -> Floats:
    """Seconds of every row by a fit that has not seen its group. A group of 0 is never left out, its rows are
    NaN.

    `fit` is given which rows it may see; `predict` says seconds_N of all rows.
    """
    found_N = np.full(len(group_N), np.nan)
    for group in np.unique(group_N[group_N != 0]):
        out_N = group_N == group
        found_N[out_N] = predict(fit(~out_N))[out_N]
    return found_N
