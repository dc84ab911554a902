"""What is known of a layer's tokens, as messages per token: value, slope and exact change for any shares.

Shapes: T tokens, K = top_k, E experts, X cells (see reach).
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.packing import Loads
from planner.solvers.methods.affinity.reach import Shares

SLOPE_TOKENS = 2000


class Evidence(Protocol):
    """Messages per token are linear in the shares of any one expert.

    So a slope is an exact price for changing that expert alone.
    """

    work: int  # numbers looked at for one table of slopes
    rugged: bool  # whether experts' prices depend on each other, so that descents end in local optima

    def value(self, share_EX: Shares) -> float: ...

    def slope_EX(self, share_EX: Shares) -> Loads: ...

    def change(self, share_EX: Shares, experts: Sequence[int], new_CX: Shares) -> float:
        """Messages per token more, if these experts (one a row of `new_CX`) had new shares."""
        ...


class Traced:
    """Tokens with their experts: a token sends one message to a place, however many of its experts are there.

    Slopes, which only say what is worth a check, look at `SLOPE_TOKENS` tokens at most; values and changes
    look at all.
    """

    rugged = True

    def __init__(self, experts_TK: npt.NDArray[np.integer], experts: int, weight_X: Shares) -> None:
        self._experts_TK, self._weight_X = experts_TK, weight_X
        token_E = [np.flatnonzero((experts_TK == expert).any(axis=1)) for expert in range(experts)]
        self._tokens_of = token_E
        self._sample_TK = experts_TK[:: -(-len(experts_TK) // SLOPE_TOKENS)]
        flat = self._sample_TK.ravel()
        self._order = np.argsort(flat, kind="stable")
        counts_E = np.bincount(flat, minlength=experts)
        self._starts_E = np.cumsum(counts_E) - counts_E
        self._seen_E = counts_E > 0
        self.work = flat.size * len(weight_X)

    def value(self, share_EX: Shares) -> float:
        reached_X = (1.0 - self._missed(1 - share_EX, slice(None))).sum(axis=0, dtype=np.float64)
        return float(reached_X @ self._weight_X) / len(self._experts_TK)

    def slope_EX(self, share_EX: Shares) -> Loads:
        """A place is reached because of one expert where all others of the token miss it.

        That is prefix times suffix over the token's experts.
        """
        tokens, top_k = self._sample_TK.shape
        miss_EX = 1 - share_EX
        others_TKX = np.ones((tokens, top_k, share_EX.shape[1]), dtype=np.float32)
        before_TX = np.ones((tokens, share_EX.shape[1]), dtype=np.float32)
        after_TX = before_TX.copy()
        for k in range(top_k):
            others_TKX[:, k] *= before_TX
            before_TX *= miss_EX[self._sample_TK[:, k]]
            back = top_k - 1 - k
            others_TKX[:, back] *= after_TX
            after_TX *= miss_EX[self._sample_TK[:, back]]
        slope_EX = np.zeros(share_EX.shape)
        ordered = others_TKX.reshape(tokens * top_k, -1)[self._order]
        slope_EX[self._seen_E] = np.add.reduceat(ordered, self._starts_E[self._seen_E], axis=0)
        return np.asarray(slope_EX * (self._weight_X / tokens))

    def change(self, share_EX: Shares, experts: Sequence[int], new_CX: Shares) -> float:
        concerned_T = np.zeros(len(self._experts_TK), dtype=bool)
        for expert in experts:
            concerned_T[self._tokens_of[expert]] = True
        rows = np.flatnonzero(concerned_T)
        miss_EX = 1 - share_EX
        before = self._missed(miss_EX, rows).sum(axis=0, dtype=np.float64)
        miss_EX[list(experts)] = 1 - new_CX
        after = self._missed(miss_EX, rows).sum(axis=0, dtype=np.float64)
        return float((before - after) @ self._weight_X) / len(self._experts_TK)

    def _missed(self, miss_EX: Shares, rows: npt.NDArray[np.int64] | slice) -> Shares:
        """[tokens, X]: chance that no expert of the token goes to the place."""
        experts_TK = self._experts_TK[rows]
        missed_TX: Shares = miss_EX[experts_TK[:, 0]]
        for k in range(1, experts_TK.shape[1]):
            missed_TX *= miss_EX[experts_TK[:, k]]
        return missed_TX


class Counted:
    """Counts alone, or a transport that sends every assignment by itself: each assignment is a message."""

    rugged = False

    def __init__(self, chance_E: Loads, weight_X: Shares) -> None:
        """`chance_E`: assignments of each expert per token."""
        self._slope_EX = chance_E[:, None] * weight_X
        self.work = self._slope_EX.size

    def value(self, share_EX: Shares) -> float:
        return float((self._slope_EX * share_EX).sum())

    def slope_EX(self, share_EX: Shares) -> Loads:
        del share_EX
        return self._slope_EX

    def change(self, share_EX: Shares, experts: Sequence[int], new_CX: Shares) -> float:
        rows = list(experts)
        return float((self._slope_EX[rows] * (new_CX - share_EX[rows])).sum())
