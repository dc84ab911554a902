"""A law of whole steps, fitted: how much of each term a step takes, overall, by GPU system and by engine.

    seconds = fixed + Σ over terms of exp(base + of its system + of its engine) · term

Coefficients cannot be negative. The logarithm of the ratio to what was measured is made small, large misses
counting less than squared; a ridge keeps the base near 1 and systems and engines near the base.

Shapes: N rows, T terms, K coefficients, V values of a factor.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Coefficients = dict[str, float]

SCALE = 0.1  # misses beyond 10 % count in proportion, not squared
STEPS, SMALLEST_STEP = 200, 1e-9


class _Rows(NamedTuple):
    terms_NT: Floats
    fixed_N: Floats
    log_N: Floats  # of the seconds that were measured
    blocks_NB: Floats


def fit(
    terms_NT: Floats,
    seconds_N: Floats,
    names: Sequence[str],
    factors: Mapping[str, Sequence[str]],
    ridges: tuple[float, float],
    fixed_N: Floats,
) -> tuple[Coefficients, Mapping[str, Mapping[str, Coefficients]]]:
    """(base, what multiplies it by factor and value).

    `factors`: the value of each in every row. `ridges`: how hard the base, and factors, are held to 1.
    `fixed_N`: seconds of each row that are taken as they are.

    Deterministic: the same rows give the same bytes on one machine.
    """
    known = {factor: sorted(set(values)) for factor, values in factors.items()}
    blocks_NB = _blocks(factors, known)
    ridge_K = np.repeat([ridges[0]] + [ridges[1]] * (blocks_NB.shape[1] - 1), len(names))
    coefficients_BT = _descend(_Rows(terms_NT, fixed_N, np.log(seconds_N), blocks_NB), ridge_K)
    rows = iter(np.exp(coefficients_BT))
    base = dict(zip(names, next(rows).tolist(), strict=True))
    return base, {
        factor: {value: dict(zip(names, next(rows).tolist(), strict=True)) for value in values}
        for factor, values in known.items()
    }


def _blocks(factors: Mapping[str, Sequence[str]], known: Mapping[str, Sequence[str]]) -> Floats:
    """1 where a block of coefficients (the base, then every value of every factor) is a row's."""
    columns = [
        [float(value == of_row) for of_row in factors[factor]]
        for factor, values in known.items()
        for value in values
    ]
    rows = len(next(iter(factors.values())))
    return np.array([[1.0] * rows, *columns]).T


def _descend(rows: _Rows, ridge_K: Floats) -> Floats:
    """Gauss-Newton steps, damped until each is an improvement (Levenberg and Marquardt)."""
    shape = rows.blocks_NB.shape[1], rows.terms_NT.shape[1]
    x_K, damping = np.zeros(shape[0] * shape[1]), 1e-2
    loss, gradient_K, curvature_KK = _around(x_K.reshape(shape), rows, ridge_K)
    for _ in range(STEPS):
        step_K = np.linalg.solve(curvature_KK + damping * np.diag(ridge_K + 1), -gradient_K)
        beyond = _around((x_K + step_K).reshape(shape), rows, ridge_K)
        if beyond[0] >= loss:
            damping *= 4
            if damping > 1e12:
                break
            continue
        gained = loss - beyond[0]
        x_K, damping = x_K + step_K, damping / 3
        loss, gradient_K, curvature_KK = beyond
        if gained < SMALLEST_STEP * loss:
            break
    return x_K.reshape(shape)


def _around(x_BT: Floats, rows: _Rows, ridge_K: Floats) -> tuple[float, Floats, Floats]:
    """Loss, its gradient, and its curvature in Gauss's and Newton's sense."""
    parts_NT = rows.terms_NT * np.exp(rows.blocks_NB @ x_BT)
    seconds_N = rows.fixed_N + parts_NT.sum(axis=1)
    miss_N = (np.log(seconds_N) - rows.log_N) / SCALE
    long_N = np.sqrt(1 + miss_N**2)
    shares_NT = parts_NT / seconds_N[:, None] / SCALE
    slope_NK = (rows.blocks_NB[:, :, None] * shares_NT[:, None, :]).reshape(len(seconds_N), -1)
    x_K = x_BT.ravel()
    loss = float((long_N - 1).sum() + (ridge_K * x_K**2).sum() / 2)
    gradient_K = slope_NK.T @ (miss_N / long_N) + ridge_K * x_K
    curvature_KK = (slope_NK / long_N[:, None]).T @ slope_NK + np.diag(ridge_K)
    return loss, gradient_K, curvature_KK
