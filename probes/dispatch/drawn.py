"""The tokens of a rank: rows of a trace, or drawn with exactly the chances that the cost model counts with.

A draw of one expert after the other flattens a skewed load: what is hot is taken early and can't be taken
again. Here the chances of the whole top-k are given, and the draw is conditional Poisson sampling: of all
laws of k distinct experts with these chances, the one of most entropy, so nothing is said about which experts
go together.

Shapes: T tokens, R rows of a trace, K = top_k, E experts, J = 0..top_k picks that are still to be made.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MANY = 8  # tokens an expert, on average: from there on even a cold one is rarely missed by a step
ROUNDING = 1e-8  # what chances may miss of their sum, and the next to 1 that is taken for certain
CLOSE = 1e-10  # largest error of a chance, at which the weights are good enough
# of each correction of the weights' logarithms: two experts overshoot twice, many hardly at all, so two
# thirds bring any error to a third
STEP = 2 / 3
MOST_ROUNDS = 200


def draw_by_inclusion(chance_E: Floats, tokens: int, top_k: int, rng: np.random.Generator) -> Ids:
    """experts_TK: for each token `top_k` distinct experts in order of id, expert e by chance `chance_E[e]`.

    Each token by itself follows the law exactly, and so do pairs of its experts; what expectation says of any
    of them is unbiased. Many tokens are evened: of those that have as many picks to make, the number that
    take an expert is rounded at random, not drawn, so that an expert is in about `tokens · chance` of them, a
    few more or less. Few tokens are independent, since evened ones touch more experts than a step of a server
    does. Where chances sum to less than `top_k`, since too few experts have load, the others share what is
    missing.

    >>> draw_by_inclusion(np.array([0.0, 1.0, 0.5, 0.5]), 4, 2, np.random.default_rng(0)).tolist()
    [[1, 3], [1, 3], [1, 2], [1, 2]]
    """
    chance_E = _whole(chance_E, top_k)
    certain_E = chance_E > 1 - 2 * ROUNDING
    open_E = np.flatnonzero((chance_E > 0) & ~certain_E)
    picks = top_k - int(certain_E.sum())
    experts_TK = np.empty((tokens, top_k), dtype=np.int64)
    experts_TK[:, picks:] = np.flatnonzero(certain_E)
    if picks:
        take_EJ = _walk_of(chance_E[open_E].tobytes(), picks)
        experts_TK[:, :picks] = open_E[_drawn_TK(take_EJ, tokens, rng)]
    experts_TK.sort(axis=1)
    return experts_TK


def rows_of_rank(trace_RK: npt.NDArray[np.integer], tokens: int, rank: int, rng: np.random.Generator) -> Ids:
    """experts_TK: the rows of a recorded trace that a rank sends, one after the other in an order by chance.

    With the same `rng`, all ranks together send each row as often as any other, give or take one.
    """
    order_R = rng.permutation(len(trace_RK))
    return trace_RK[order_R[(rank * tokens + np.arange(tokens)) % len(order_R)]].astype(np.int64)


def _whole(chance_E: Floats, top_k: int) -> Floats:
    """The chances with what they miss of `top_k` spread over the experts that have none."""
    idle_E = chance_E == 0
    missing = top_k - chance_E.sum()
    if missing > ROUNDING and idle_E.any():
        chance_E = np.where(idle_E, missing / idle_E.sum(), chance_E)
    fair = np.isfinite(chance_E).all() and (chance_E >= 0).all() and (chance_E <= 1 + ROUNDING).all()
    if not 1 <= top_k <= len(chance_E) or not fair or abs(chance_E.sum() - top_k) > ROUNDING:
        drawn = f"cannot draw {top_k} distinct experts from {len(chance_E)} chances"
        raise ValueError(f"{drawn}; each must be 0 to 1, and their sum {top_k}")
    return chance_E


@lru_cache(maxsize=256)  # every rank of a run draws by the same chances
def _walk_of(chances: bytes, picks: int) -> Floats:
    take_EJ = _take_EJ(np.frombuffer(chances), picks)
    take_EJ.flags.writeable = False
    return take_EJ


def _take_EJ(chance_E: Floats, picks: int) -> Floats:
    """The chance that a token takes expert e, where it has come to it with J picks still to make.

    All chances are above 0 and below 1. The weight of an expert, its odds if the number of picks were free,
    is found by fixed-point iteration; at weights of `picks` expected experts, that number is the likeliest,
    so no chance of a count that matters is small, and none is a difference.
    """
    odds_E = chance_E / (1 - chance_E)
    weight_E = odds_E
    for _ in range(MOST_ROUNDS):
        take_E = weight_E / (1 + weight_E)
        before_EJ, after_EJ = _counts_EJ(take_E, picks), _counts_EJ(take_E[::-1], picks)[::-1]
        with_E = (before_EJ[:-1, :-1] * after_EJ[1:, -2::-1]).sum(axis=1)
        without_E = (before_EJ[:-1] * after_EJ[1:, ::-1]).sum(axis=1)
        found_E = 1 / (1 + without_E / (weight_E * with_E))
        if np.abs(found_E - chance_E).max() < CLOSE:
            break
        weight_E = weight_E * (odds_E * without_E / (with_E * weight_E)) ** STEP
    else:
        raise ArithmeticError(f"no weights for the chances {chance_E.tolist()}")
    take_EJ = np.zeros((len(chance_E), picks + 1))
    np.divide(
        take_E[:, None] * after_EJ[1:, :-1],
        after_EJ[:-1, 1:],
        out=take_EJ[:, 1:],
        where=after_EJ[:-1, 1:] > 0,
    )
    return take_EJ


def _counts_EJ(take_E: Floats, picks: int) -> Floats:
    """Chance that J of the experts before e are taken, each by itself; one row more than experts."""
    counts_EJ = np.zeros((len(take_E) + 1, picks + 1))
    counts_EJ[0, 0] = 1
    for expert, take in enumerate(take_E):
        counts_EJ[expert + 1] = counts_EJ[expert] * (1 - take)
        counts_EJ[expert + 1, 1:] += counts_EJ[expert, :-1] * take
    return counts_EJ


def _drawn_TK(take_EJ: Floats, tokens: int, rng: np.random.Generator) -> Ids:
    """Each token walks along the experts, and takes or leaves each."""
    picks = take_EJ.shape[1] - 1
    evened = tokens * picks >= MANY * len(take_EJ)
    left_T = np.full(tokens, picks, dtype=np.uint8)
    drawn_TK = np.empty((tokens, picks), dtype=np.int64)
    for expert, take_J in enumerate(take_EJ):
        tokens_J = np.bincount(left_T, minlength=picks + 1)
        if evened:
            rounded_J = np.floor(tokens_J * take_J + rng.random(picks + 1)).astype(np.int64)
            taking_J = np.minimum(rounded_J, tokens_J)
        else:
            taking_J = rng.binomial(tokens_J, take_J)
        mixed_T = rng.permutation(tokens)
        grouped_T = mixed_T[np.argsort(left_T[mixed_T], kind="stable")]
        first_J = np.cumsum(tokens_J) - tokens_J
        place_T = np.arange(tokens) - np.repeat(first_J, tokens_J)
        taken_T = grouped_T[place_T < np.repeat(taking_J, tokens_J)]
        drawn_TK[taken_T, picks - left_T[taken_T]] = expert
        left_T[taken_T] -= 1
    return drawn_TK
