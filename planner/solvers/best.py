"""The best rows: of all placements that are offered, every layer keeps the row that scores best."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.placement import Placement

Score = Callable[[Placement], npt.NDArray[np.float64]]  # one number a layer, lower is better


class BestRows:
    """A tie goes to the earlier; two placements are held at a time.

    `worth`: share of the first one's score that a later row must win.
    """

    def __init__(self, score: Score, worth: float = 0.0) -> None:
        self._score, self._worth, self._most_L = score, worth, np.empty(0)
        self._first: Placement | None = None
        self._expert_LP, self._score_L = np.empty((0, 0), dtype=np.int64), np.empty(0)
        self.offers = 0

    def offer(self, placement: Placement) -> None:
        score_L = self._score(placement)
        if self._first is None:
            self._first, self._expert_LP, self._score_L = (
                placement,
                placement.expert_LP.copy(),
                score_L.copy(),
            )
            self._most_L = score_L * (1 - self._worth)
        better_L = (score_L < self._score_L) & (score_L <= self._most_L)
        self._expert_LP[better_L], self._score_L[better_L] = placement.expert_LP[better_L], score_L[better_L]
        self.offers += 1

    @property
    def placement(self) -> Placement:
        assert self._first is not None  # something was offered
        return replace(self._first, expert_LP=self._expert_LP)


def best_rows(
    placement: Placement,
    candidates: Iterable[Placement],
    score: Score,
    more: Callable[[], bool] = lambda: True,
    worth: float = 0.0,
) -> Placement:
    """Every layer's best row among the placement and the candidates, which must win that share of its score.

    `more` is asked after each candidate.
    """
    best = BestRows(score, worth)
    best.offer(placement)
    for candidate in candidates:
        best.offer(candidate)
        if not more():
            break
    return best.placement


def rows_where(kept_L: npt.NDArray[np.bool_], placement: Placement, other: Placement) -> Placement:
    """The placement's rows in these layers, the other's in the rest."""
    return replace(placement, expert_LP=np.where(kept_L[:, None], placement.expert_LP, other.expert_LP))
