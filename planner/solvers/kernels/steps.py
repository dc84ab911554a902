"""One step from a placement towards a better one, in many layers at once; the best gain per move first.

A step gives a slot to another expert, or swaps two experts. Both kinds are judged exactly: by what they do to
the sum over GPUs of exp(sharpness · load), under even split (planner/solvers/kernels/drift.py says why that
sum).
"""

import numpy as np

from planner.solvers.kernels.drift import State, put
from planner.solvers.kernels.field import Field
from planner.solvers.kernels.gifts import best_gifts
from planner.solvers.kernels.packing import Ints
from planner.solvers.kernels.slot_swaps import best_swaps

HOTTEST = 4  # GPUs of a layer that a step may relieve
MOST_GIVERS = 128  # slots that may change their expert, those of the least missed replicas
LARGEST_TABLE = 4_000_000  # cells looked at together; bounds memory at about 200 MB


def step(state: State, rows: Ints) -> Ints:
    """The best step of each of these layers is taken; the layers that had one are returned."""
    spare_L = (np.take_along_axis(state.replicas_LE, state.expert_LP, axis=1) > 1).sum(axis=1)
    givers = min(MOST_GIVERS, max(int(spare_L.max()), 1))
    hot = min(HOTTEST, state.gpus)
    at_once = max(LARGEST_TABLE // _cells(state, givers, hot), 1)
    stepped: list[int] = []
    for start in range(0, len(rows), at_once):
        stepped += _stepped(state, rows[start : start + at_once], givers, hot)
    return np.array(stepped, dtype=np.int64)


def _cells(state: State, givers: int, hot: int) -> int:
    """Of the largest table that one layer takes."""
    slots = int(state.expert_LP.shape[1])
    hot_slots = hot * (slots // state.gpus)
    return max(hot_slots * slots, givers * (state.gpus + hot_slots), state.gpus * int(state.load_LE.shape[1]))


def _stepped(state: State, rows: Ints, givers: int, hot: int) -> list[int]:
    field = Field(state, rows, hot)
    gain_gift_R, slot_R, expert_R = best_gifts(state, rows, field, givers)
    gain_swap_R, one_R, other_R = best_swaps(state, rows, field)
    stepped = []
    for at, row in enumerate(rows.tolist()):
        if min(gain_gift_R[at], gain_swap_R[at]) >= 0:
            continue
        stepped.append(row)
        if gain_gift_R[at] <= gain_swap_R[at]:
            put(state, row, int(slot_R[at]), int(expert_R[at]))
        else:
            one, other = int(one_R[at]), int(other_R[at])
            expert_one, expert_other = int(state.expert_LP[row, one]), int(state.expert_LP[row, other])
            put(state, row, one, expert_other)
            put(state, row, other, expert_one)
    return stepped
