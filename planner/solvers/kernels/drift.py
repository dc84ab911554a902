"""The state of a search from one placement to the next, and what it is judged by: the next busiest GPU.

The load of the next window is not known. Loads drift: from window to window an expert's load changes by a
share, its `drift`. So the GPUs just below the busiest one count too, and those whose load hangs on few heavy
replicas count more. For normal drift the mean of the maximum is at most log(Σ_g exp(b · load_g + b² ·
variance_g / 2)) / b for every b > 0; the `sharpness` b = sqrt(2 · log G) / deviation makes it smallest where
variances are equal. A move is a slot whose expert was not on that GPU.

Shapes: L layers (R of them at work), E experts, G GPUs, S slots a GPU, P slots.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.packing import Ints, Loads, replica_values

LARGEST_EXPONENT = 600.0  # exp of a little more is infinite
# Without any, only the busiest GPU would count, and the search would stop at the first tie
LEAST_DRIFT = 0.01


@dataclass
class State:
    """What the steps change, and what they are judged by.

    `drift_L` is the relative change of an expert's load from one window to the next.
    """

    load_LE: Loads
    drift_L: Loads
    node_G: Ints | None
    expert_LP: Ints
    replicas_LE: Ints
    held_LGE: npt.NDArray[np.bool_]
    before_LGE: npt.NDArray[np.bool_]
    sharpness_L: Loads
    moves_L: Ints

    @property
    def gpus(self) -> int:
        return int(self.held_LGE.shape[1])

    @property
    def gpu_P(self) -> Ints:
        gpu_P: Ints = np.arange(self.expert_LP.shape[1]) // (self.expert_LP.shape[1] // self.gpus)
        return gpu_P

    def values_RE(self, rows: Ints, more: int = 0) -> Loads:
        """Load of one replica with `more` replicas than there are."""
        values_RE: Loads = self.load_LE[rows] / np.maximum(self.replicas_LE[rows] + more, 1)
        return values_RE

    def totals_RG(self, rows: Ints) -> Loads:
        value_RP = np.take_along_axis(self.values_RE(rows), self.expert_LP[rows], axis=1)
        totals_RG: Loads = value_RP.reshape(len(rows), self.gpus, -1).sum(axis=2)
        return totals_RG


def begin(load_LE: Loads, expert_LP: Ints, gpus: int, drift_L: Loads, node_G: Ints | None = None) -> State:
    """No step taken yet. With `node_G` no step brings an expert to a node that has it already."""
    layers, experts = load_LE.shape
    value_LP, replicas_LE = replica_values(load_LE, expert_LP)
    held_LGE = np.zeros((layers, gpus, experts), dtype=bool)
    gpu_P = np.arange(expert_LP.shape[1]) // (expert_LP.shape[1] // gpus)
    held_LGE[np.arange(layers)[:, None], gpu_P, expert_LP] = True
    drift_L = np.maximum(drift_L, LEAST_DRIFT)
    deviation_L = np.maximum(drift_L * np.sqrt((value_LP**2).sum(axis=1) / gpus), np.finfo(float).tiny)
    sharpness_L = np.sqrt(2 * np.log(gpus)) / deviation_L
    return State(
        load_LE,
        drift_L,
        node_G,
        expert_LP.copy(),
        replicas_LE,
        held_LGE,
        held_LGE.copy(),
        sharpness_L,
        np.zeros(layers, dtype=np.int64),
    )


def risk_L(state: State) -> Loads:
    """What the next window's busiest GPU is expected to carry, at most; in the unit of the loads."""
    rows = np.arange(len(state.load_LE))
    value_LP = np.take_along_axis(state.values_RE(rows), state.expert_LP, axis=1)
    value_LGS = value_LP.reshape(len(rows), state.gpus, -1)
    spread_L1 = (state.sharpness_L * state.drift_L**2)[:, None] / 2
    risk_LG = value_LGS.sum(axis=2) + spread_L1 * (value_LGS**2).sum(axis=2)
    peak_L1 = risk_LG.max(axis=1, keepdims=True)
    summed_L = np.exp(state.sharpness_L[:, None] * (risk_LG - peak_L1)).sum(axis=1)
    risk_L: Loads = peak_L1[:, 0] + np.log(summed_L) / state.sharpness_L
    return risk_L


def correct_counts(state: State, margin: float, most: int) -> None:
    """Up to `most` slots a layer go from the replica least missed to the one most needed.

    Where that lowers the loads' variance by `margin` more. Each goes to the place that leaves the least sum
    of exponentials. Alone such a step often raises the busiest GPU: it pays with the steps that follow.
    """
    for _ in range(most):
        counts_LE, squares_LE = state.replicas_LE, state.load_LE**2
        gain_LE = np.where(counts_LE < state.gpus, squares_LE / (counts_LE * (counts_LE + 1)), 0.0)
        loss_LE = np.where(counts_LE > 1, squares_LE / np.maximum(counts_LE * (counts_LE - 1), 1), np.inf)
        needed_L, spare_L = gain_LE.argmax(axis=1), loss_LE.argmin(axis=1)
        row_L = np.arange(len(counts_LE))
        rows = np.flatnonzero(gain_LE[row_L, needed_L] > (1 + margin) * loss_LE[row_L, spare_L])
        changed = [_give(state, int(row), int(spare_L[row]), int(needed_L[row])) for row in rows]
        if not any(changed):
            return


def _give(state: State, row: int, spare: int, needed: int) -> bool:
    """One slot of `spare` goes to `needed`, on the GPU where that is best; False where there is none."""
    held_GE = state.held_LGE[row]
    open_G = held_GE[:, spare] & ~held_GE[:, needed]
    if state.node_G is not None:
        open_G &= ~np.isin(state.node_G, state.node_G[held_GE[:, needed]])
    where = np.flatnonzero(open_G)
    if not len(where):
        return False
    gpu = _best_gpu(state, row, spare, needed, where)
    size = state.expert_LP.shape[1] // state.gpus
    slot = gpu * size + int((state.expert_LP[row, gpu * size : (gpu + 1) * size] == spare).argmax())
    put(state, row, slot, needed)
    return True


def _best_gpu(state: State, row: int, spare: int, needed: int, where: Ints) -> int:
    """Of the GPUs in `where` the one that is left with the least sum of exponentials over all GPUs."""
    rows, held_GE = np.array([row]), state.held_LGE[row]
    value_E, fewer_E, more_E = (state.values_RE(rows, more)[0] for more in (0, -1, 1))
    spare_rise, needed_fall = (fewer_E - value_E)[spare], (more_E - value_E)[needed]
    total_G = state.totals_RG(rows)[0] + held_GE[:, spare] * spare_rise + held_GE[:, needed] * needed_fall
    after = total_G[where] - fewer_E[spare] + more_E[needed]
    sharpness = state.sharpness_L[row]
    weight_G = np.exp(sharpness * (total_G - total_G.max()))
    changed = np.exp(np.minimum(sharpness * (after - total_G.max()), LARGEST_EXPONENT))
    return int(where[(weight_G.sum() - weight_G[where] + changed).argmin()])


def put(state: State, row: int, slot: int, expert: int) -> None:
    """The slot gets the expert."""
    gone, gpu = int(state.expert_LP[row, slot]), slot // (state.expert_LP.shape[1] // state.gpus)
    state.moves_L[row] += int(state.before_LGE[row, gpu, gone]) - int(state.before_LGE[row, gpu, expert])
    state.held_LGE[row, gpu, gone], state.held_LGE[row, gpu, expert] = False, True
    state.replicas_LE[row, gone] -= 1
    state.replicas_LE[row, expert] += 1
    state.expert_LP[row, slot] = expert
