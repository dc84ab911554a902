"""Which place a token's assignment goes to: the replica rule, seen from nodes instead of slots.

A place is what a message goes to: a node, an NVLink domain or a GPU. A cell is a pair (source place, other
place), or a place alone where sources are averaged.
Shapes: N places, X cells, Y figures of load that should be even; `...` is any leading axes. A copy count is
the number of slots at a place that hold an expert.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.packing import Ints, Loads

Shares = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Reach:
    """`near`: a source uses the copies of its own place where there are any, else all copies evenly.

    Without it always all copies evenly. `averaged`: sources of a place are taken as one average source, N
    cells instead of N squared. Exact without `near`.
    """

    gpus_N: Ints
    near: bool
    averaged: bool

    @cached_property
    def source_N(self) -> Loads:
        """Share of the tokens that start at each place."""
        return np.asarray(self.gpus_N / self.gpus_N.sum())

    @cached_property
    def weight_X(self) -> Shares:
        """Share of the tokens that start where a message of the cell starts."""
        weight_X = 1.0 - self.source_N
        if self._by_source:
            weight_X = np.repeat(self.source_N, len(self.gpus_N))[self._away_X]
        return weight_X.astype(np.float32)

    @property
    def _by_source(self) -> bool:
        return self.near and not self.averaged

    @cached_property
    def _away_X(self) -> Ints:
        """The pairs (source place, place) that differ, as positions in a square."""
        return np.flatnonzero(~np.eye(len(self.gpus_N), dtype=bool).ravel())

    def share_X(self, copies_N: Ints) -> Shares:
        """[..., N] copies -> [..., X]: share of assignments from elsewhere that go to each place."""
        far_N: Shares = (copies_N / copies_N.sum(axis=-1, keepdims=True)).astype(np.float32)
        if not self.near:
            return far_N
        held_N = copies_N > 0
        if self.averaged:
            without = 1.0 - (held_N * self.source_N).sum(axis=-1, keepdims=True)
            share_N: Shares = (far_N * without / (1.0 - self.source_N)).astype(np.float32)
            return share_N
        # Who holds a copy sends none away
        share_NN = np.where(held_N[..., :, None], np.float32(0), far_N[..., None, :])
        return np.ascontiguousarray(share_NN.reshape(*copies_N.shape[:-1], -1)[..., self._away_X])

    def served_N(self, copies_N: Ints) -> tuple[Loads, Loads]:
        """Share of an expert's assignments that each place serves, and the part of it from elsewhere.

        ([..., N], [..., N]).
        """
        far_N = copies_N / copies_N.sum(axis=-1, keepdims=True)
        if not self.near:
            return far_N, far_N * (1.0 - self.source_N)
        held_N = copies_N > 0
        away_N = far_N * (1.0 - (held_N * self.source_N).sum(axis=-1, keepdims=True))
        return held_N * self.source_N + away_N, away_N

    def load_Y(self, copies_N: Ints) -> Loads:
        """[..., N] -> [..., Y]: what each place serves over its even part.

        With `near` also how far what comes from elsewhere is from even over places. Scaled so that squares of
        places of unequal size add up fairly.
        """
        served_N, away_N = self.served_N(copies_N)
        scale_N = np.sqrt(len(self.gpus_N) / self.source_N)
        if not self.near:
            return served_N * scale_N
        along_N = np.sqrt(self.source_N)
        away_N = away_N * scale_N
        return np.concatenate([served_N * scale_N, away_N - (away_N @ along_N)[..., None] * along_N], axis=-1)

    @cached_property
    def even_Y(self) -> Loads:
        """`load_Y` of a layer whose load is where its GPUs are."""
        even_N = np.sqrt(len(self.gpus_N) * self.source_N)
        return np.concatenate([even_N, np.zeros(len(even_N))]) if self.near else even_N
