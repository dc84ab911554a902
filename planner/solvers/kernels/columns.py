"""Columns: what sweeps of swaps change, one column a GPU of a layer; and doing the swaps that were chosen.

Shapes: L layers, E experts, G GPUs, S slots a GPU; C = L * G columns; M swaps of B slots for B slots.
The slot axis comes first, because NumPy is several times faster when the long axis is last.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.packing import Ints, Loads
from planner.solvers.kernels.spread import Flags, Spread, once_a_layer


@dataclass
class Columns:
    """What the sweeps change, and how fast each column is."""

    expert_SC: Ints
    value_SC: Loads
    total_C: Loads
    holds_CE: Flags
    speed_C: Loads
    gpus: int


@dataclass(frozen=True, eq=False)
class Swaps:
    """Slots of hot columns, each for slots of a cold one."""

    give_BM: Ints
    hot_M: Ints
    take_BM: Ints
    cold_M: Ints

    def where(self, kept_M: Flags) -> "Swaps":
        hot_M, cold_M = self.hot_M[kept_M], self.cold_M[kept_M]
        return Swaps(self.give_BM[:, kept_M], hot_M, self.take_BM[:, kept_M], cold_M)


def columns_of(value_LP: Loads, expert_LP: npt.NDArray[np.integer], speed_LG: Loads, experts: int) -> Columns:
    layers, gpus = speed_LG.shape
    value_SC = np.ascontiguousarray(value_LP.reshape(layers * gpus, -1).T)
    expert_SC = np.ascontiguousarray(expert_LP.reshape(layers * gpus, -1).T.astype(np.int64))
    holds_CE = np.zeros((layers * gpus, experts), dtype=bool)
    holds_CE[np.arange(layers * gpus), expert_SC] = True
    return Columns(expert_SC, value_SC, value_SC.sum(axis=0), holds_CE, speed_LG.ravel(), gpus)


def exchange(columns: Columns, swaps: Swaps, spread: Spread | None) -> Ints:
    """Do these swaps, every column in one at most, where they help. Returns the hot columns."""
    expert_SC, value_SC = columns.expert_SC, columns.value_SC
    given_M = value_SC[swaps.give_BM, swaps.hot_M].sum(axis=0)
    moved_M = given_M - value_SC[swaps.take_BM, swaps.cold_M].sum(axis=0)
    kept_M = _lowers(columns, swaps, moved_M)
    if spread is not None:
        kept_M &= once_a_layer(_moving(columns, swaps))
    swaps, moved_M = swaps.where(kept_M), moved_M[kept_M]
    give_BM, hot_M, take_BM, cold_M = swaps.give_BM, swaps.hot_M, swaps.take_BM, swaps.cold_M
    gone_BM, come_BM = expert_SC[give_BM, hot_M], expert_SC[take_BM, cold_M]
    if spread is not None:
        spread.move(gone_BM, hot_M, cold_M)
        spread.move(come_BM, cold_M, hot_M)
    columns.holds_CE[hot_M, gone_BM] = columns.holds_CE[cold_M, come_BM] = False
    columns.holds_CE[hot_M, come_BM] = columns.holds_CE[cold_M, gone_BM] = True
    expert_SC[give_BM, hot_M], expert_SC[take_BM, cold_M] = come_BM, gone_BM
    value_SC[give_BM, hot_M], value_SC[take_BM, cold_M] = value_SC[take_BM, cold_M], value_SC[give_BM, hot_M]
    columns.total_C[hot_M] -= moved_M
    columns.total_C[cold_M] += moved_M
    return hot_M


def _lowers(columns: Columns, swaps: Swaps, moved_M: Loads) -> Flags:
    """Whether both columns end below the hot one: swaps were chosen in single precision."""
    total_C, speed_C, hot_M, cold_M = columns.total_C, columns.speed_C, swaps.hot_M, swaps.cold_M
    before_M, hot_after_M = total_C[hot_M] / speed_C[hot_M], (total_C[hot_M] - moved_M) / speed_C[hot_M]
    cold_after_M = (total_C[cold_M] + moved_M) / speed_C[cold_M]
    return np.asarray(np.maximum(hot_after_M, cold_after_M) < before_M)


def _moving(columns: Columns, swaps: Swaps) -> Ints:
    """key_XM: the experts that each swap moves, told apart by layer."""
    gone_BM = columns.expert_SC[swaps.give_BM, swaps.hot_M]
    come_BM = columns.expert_SC[swaps.take_BM, swaps.cold_M]
    layer_M = swaps.hot_M // columns.gpus
    key_XM: Ints = layer_M * columns.holds_CE.shape[1] + np.concatenate([gone_BM, come_BM])
    return key_XM
