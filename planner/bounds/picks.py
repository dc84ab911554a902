"""What is least whatever the placement: messages of a token's picks, and sums over replica counts.

The sums are over experts whose replica counts share the slots.

Shapes: E experts, T traced tokens, K = top_k, C replica counts (column c - 1 is count c).
"""

import numpy as np
import numpy.typing as npt

from planner.cost import TRACED_TOKENS, inclusion_E

Floats = npt.NDArray[np.float64]

HALVINGS = 48  # of the price of a replica; more change nothing in a float


def messages_E(share_E: Floats, top_k: int, slots_at_place: int) -> Floats:
    """Messages that a token sends on account of each expert, at least, where a place gets one for all of a
    token's experts there; from a histogram.

    `cost` says that a place where a token has m picks in expectation gets at least 1 - (1 - m / k)^k
    messages. That is concave in m, so each of the picks stands for no fewer than at the largest m of a place
    that holds this expert: beside the hottest others that fit.
    """
    chance_E = inclusion_E(share_E, top_k)
    picks = float(chance_E.sum())
    most_E = np.clip(chance_E + _hottest_others(chance_E, slots_at_place - 1), 1e-12, picks)
    return np.asarray(chance_E * (1 - (1 - most_E / picks) ** picks) / most_E)


def messages_of_trace_XE(
    experts_TK: npt.NDArray[np.integer], experts: int, slots_at_place_X: tuple[int, ...]
) -> list[Floats]:
    """The same, counted in the traced tokens that traffic is averaged over, for places of several sizes at
    once.

    A pick of expert e stands for 1 / n messages, n the token's experts at the place. Over the tokens of e the
    mean of 1 / n is at least 1 over the mean of n, and that is largest beside those that are chosen most
    often together with e.
    """
    experts_TK = experts_TK[:: max(len(experts_TK) // TRACED_TOKENS, 1)]
    pair_TKK = experts_TK[:, :, None].astype(np.int64) * experts + experts_TK[:, None, :]
    together_EE = np.bincount(pair_TKK.ravel(), minlength=experts**2).reshape(experts, experts)
    count_E = np.diag(together_EE).copy()
    np.fill_diagonal(together_EE, 0.0)
    most_EE = np.sort(together_EE, axis=1)[:, ::-1]
    others_XE = (most_EE[:, : slots - 1].sum(axis=1) / np.maximum(count_E, 1) for slots in slots_at_place_X)
    return [np.asarray(count_E / len(experts_TK) / (1 + others_E)) for others_E in others_XE]


def touched_slots(assignments_E: Floats, parts_CC: list[Floats], extra: int) -> float:
    """Slots with at least one token in a step, at least, over all GPUs: replica c of an expert gets
    `parts_CC[c - 1]` of its assignments, in some order.
    """
    # most replicas get the same: a thousand are a few exponentials
    alike = [np.unique(part_C, return_counts=True) for part_C in parts_CC]
    columns = [-np.expm1(-assignments_E[:, None] * part_X) @ times_X for part_X, times_X in alike]
    table_EC: Floats = np.stack(columns, axis=1)
    return least_total(table_EC, extra)


def least_total(value_EC: Floats, extra: int) -> float:
    """A bound on the least sum of one value per expert where the counts exceed one each by `extra` in all.

    Any price of a replica gives a bound: each expert takes the count that is cheapest at that price. The
    price is found at which they take `extra`.

    >>> round(least_total(np.array([[4.0, 2.0, 1.0], [9.0, 5.0, 4.0]]), 2), 9)
    7.0
    """
    slopes_EC = np.diff(value_EC, axis=1)
    if not extra or not slopes_EC.size:
        return float(value_EC[:, 0].sum())
    count_C = np.arange(value_EC.shape[1])
    low, high, best = float(slopes_EC.min()), float(slopes_EC.max()), -np.inf
    for _ in range(HALVINGS):
        price = (low + high) / 2
        priced_EC = value_EC - price * count_C
        chosen_E = priced_EC.argmin(axis=1)
        best = max(best, float(priced_EC.min(axis=1).sum()) + price * extra)
        low, high = (price, high) if chosen_E.sum() < extra else (low, price)
    return best


def least_convex_total(tables: list[tuple[Floats, Floats]], extra: int) -> float:
    """The least sum of `weight_E · toll_C` over all tables and experts; tolls fall ever more slowly with the
    count, so the largest savings are taken.

    >>> least_convex_total([(np.array([1.0, 3.0]), np.array([4.0, 2.0, 1.0]))], 2)
    7.0
    """
    total = sum(float(weight_E.sum() * toll_C[0]) for weight_E, toll_C in tables)
    saved = (weight_E[:, None] * -np.diff(toll_C) for weight_E, toll_C in tables)
    saved_X = sum(saved, np.zeros((1, 1))).ravel()
    taken = min(extra, len(saved_X))
    if not taken:
        return total
    return total - float(np.partition(saved_X, len(saved_X) - taken)[len(saved_X) - taken :].sum())


def convex(toll_C: Floats) -> Floats:
    """The largest convex table that is nowhere above this one.

    >>> convex(np.array([4.0, 3.0, 0.0])).tolist()
    [4.0, 2.0, 0.0]
    """
    corners: list[int] = []
    for count, toll in enumerate(toll_C.tolist()):
        while len(corners) > 1:
            first, last = corners[-2], corners[-1]
            if (toll_C[last] - toll_C[first]) * (count - first) < (toll - toll_C[first]) * (last - first):
                break
            corners.pop()
        corners.append(count)
    return np.interp(np.arange(len(toll_C)), corners, toll_C[corners])


def _hottest_others(chance_E: Floats, places: int) -> Floats:
    """For each expert the sum of the `places` largest entries of the others."""
    if places <= 0:
        return np.zeros_like(chance_E)
    order_E = np.argsort(-chance_E, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(chance_E[order_E])])
    rank_E = np.empty(len(chance_E), dtype=np.int64)
    rank_E[order_E] = np.arange(len(chance_E))
    places = min(places, len(chance_E) - 1)
    one_more = sums[min(places + 1, len(chance_E))]
    return np.asarray(np.where(rank_E < places, one_more - chance_E, sums[places]))
