"""Refinement: swap two replicas between a hot and a cold GPU, for many pairs of GPUs and all layers at once, until no GPU is above its goal.

Shapes: L layers, E experts, G GPUs, S slots a GPU, M nodes; C = L * G columns, one a GPU of a layer; N pairs of a hot column and a cold one.
The slot axis comes first, because NumPy is several times faster when the long axis is last.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.dealing import lightest_first
from planner.solvers.kernels.packing import Ints, Loads, replica_values

Flags = npt.NDArray[np.bool_]

COARSEST = 5e-4  # above its goal a GPU is left alone, relative to it
STEPS = 16  # of the same, in steps of what a swap can move
PATIENCE = 16  # sweeps without a lower peak before a layer is given up
MOST_SLOTS_FOR_TWO = 16  # a GPU, for swaps of two replicas at once
LARGEST_TABLE = 4_000_000  # swaps looked at together; bounds memory at about 50 MB


@dataclass
class _State:
    """What the sweeps change, and how fast each column is."""

    expert_SC: Ints
    value_SC: Loads
    total_C: Loads
    holds_CE: Flags
    speed_C: Loads
    gpus: int


@dataclass(frozen=True, eq=False)
class _Spread:
    """Copies of each expert on each node, and the least and most of them that keep an expert spread as equally as can be."""

    node_G: Ints
    held_LME: Ints
    least_LE: Ints
    most_LE: Ints


def balance(
    load_LE: Loads,
    expert_LP: npt.NDArray[np.integer],
    gpus: int,
    *,
    sweeps: int = 200,
    node_G: Ints | None = None,
    within_node: bool = False,
    speed_G: Loads | None = None,
) -> Ints:
    """expert_LP with the same replica counts and a busiest GPU (load over speed) no higher; no expert twice on a GPU.

    With `node_G` replicas are no less spread over nodes; with `within_node` as well, none leaves its node, and every node is balanced on its own.
    """
    layers = len(load_LE)
    value_LP, replicas_LE = replica_values(load_LE, expert_LP)
    speed_1G = np.ones((1, gpus)) if speed_G is None else speed_G[None]
    if node_G is None or not within_node:
        spread = None if node_G is None else _spread(expert_LP, replicas_LE, node_G)
        return _swept(
            _state(value_LP, expert_LP, np.broadcast_to(speed_1G, (layers, gpus)), load_LE.shape[1]),
            sweeps,
            spread,
        )
    balanced_LGS, value_LGS = (
        expert_LP.reshape(layers, gpus, -1).astype(np.int64),
        value_LP.reshape(layers, gpus, -1),
    )
    for gpu_NX in _nodes_by_size(node_G):  # a node is a row of its own
        rows, on = layers * len(gpu_NX), gpu_NX.ravel()
        speed_RX = np.tile(speed_1G[0, gpu_NX], (layers, 1))
        state = _state(
            value_LGS[:, on].reshape(rows, -1),
            balanced_LGS[:, on].reshape(rows, -1),
            speed_RX,
            load_LE.shape[1],
        )
        balanced_LGS[:, on] = _swept(state, sweeps, None).reshape(layers, len(on), -1)
    return balanced_LGS.reshape(layers, -1)


def _nodes_by_size(node_G: Ints) -> list[Ints]:
    """For every size of node the GPUs of the nodes of that size, a row a node."""
    members = [np.flatnonzero(node_G == node) for node in np.unique(node_G)]
    return [
        np.stack([some for some in members if len(some) == size])
        for size in sorted({len(some) for some in members})
    ]


def _state(value_LP: Loads, expert_LP: npt.NDArray[np.integer], speed_LG: Loads, experts: int) -> _State:
    layers, gpus = speed_LG.shape
    value_SC = np.ascontiguousarray(value_LP.reshape(layers * gpus, -1).T)
    expert_SC = np.ascontiguousarray(expert_LP.reshape(layers * gpus, -1).T.astype(np.int64))
    holds_CE = np.zeros((layers * gpus, experts), dtype=bool)
    holds_CE[np.arange(layers * gpus), expert_SC] = True
    return _State(expert_SC, value_SC, value_SC.sum(axis=0), holds_CE, speed_LG.ravel(), gpus)


def _swept(state: _State, sweeps: int, spread: _Spread | None) -> Ints:
    """expert_LP after swaps that lower the load over speed of hot GPUs, until none is above its goal or sweeps no longer help."""
    gpus, layers = state.gpus, len(state.total_C) // state.gpus
    speed_LG = state.speed_C.reshape(layers, gpus)
    value_LP = state.value_SC.T.reshape(layers, -1)
    goal_L = least_peaks(value_LP, gpus, speed_LG) * (1 + tolerances(value_LP, gpus))
    lowest_L, waited_L, idle_L = (
        np.full(layers, np.inf),
        np.zeros(layers, dtype=np.int64),
        np.zeros(layers, dtype=np.int64),
    )
    bundles = _bundles(len(state.value_SC))
    for sweep in range(sweeps if gpus > 1 else 0):
        paced_LG = state.total_C.reshape(layers, gpus) / speed_LG
        peak_L, hot_L = paced_LG.max(axis=1), (paced_LG > goal_L[:, None]).sum(axis=1)
        waited_L = np.where(peak_L < lowest_L * (1 - 1e-9), 0, waited_L + 1)
        lowest_L = np.minimum(lowest_L, peak_L)
        open_L = (hot_L > 0) & (waited_L <= PATIENCE)
        gear_L = idle_L // np.maximum(
            hot_L, 1
        )  # after as many idle sweeps as there are hot GPUs all pairs of GPUs have been tried
        some = [np.flatnonzero(open_L & (gear_L == gear)) for gear in range(len(bundles))]
        if not any(map(len, some)):
            break
        idle_L += 1
        for rows, bundle_XB in zip(some, bundles, strict=True):
            if len(rows):
                hot_N, cold_N = _pairs(paced_LG[rows], rows, np.minimum(hot_L[rows], gpus // 2), sweep)
                idle_L[_swap(state, hot_N, cold_N, bundle_XB, spread)] = 0
    return state.expert_SC.T.reshape(layers, -1)


def _bundles(slots: int) -> list[Ints]:
    """What one swap exchanges, as slots of a GPU: one replica, and, where that no longer helps and the table is not too large, two at once."""
    two_X2 = np.stack(np.triu_indices(slots, 1), axis=1)
    return (
        [np.arange(slots)[:, None], two_X2]
        if 4 <= slots <= MOST_SLOTS_FOR_TWO
        else [np.arange(slots)[:, None]]
    )


def least_peaks(value_LP: Loads, gpus: int, speed_LG: Loads | None = None) -> Loads:
    """A peak (load over speed) that no packing of these replicas beats: the mean, or the largest replica with the smallest company on the fastest GPU."""
    speed_LG = np.ones((1, gpus)) if speed_LG is None else speed_LG
    ordered_LP = np.sort(value_LP, axis=1)
    company_L = ordered_LP[:, : value_LP.shape[1] // gpus - 1].sum(axis=1)
    mean_L, largest_L = (
        value_LP.sum(axis=1) / speed_LG.sum(axis=1),
        (ordered_LP[:, -1] + company_L) / speed_LG.max(axis=1),
    )
    least_L: Loads = np.maximum(mean_L, largest_L)
    return least_L


def tolerances(value_LP: Loads, gpus: int) -> Loads:
    """How near to its least peak a layer is worth the work: some steps between the amounts that swaps of a GPU can move, relative to its mean load."""
    slots = value_LP.shape[1]
    swaps = slots * slots // gpus  # of one GPU, about
    mean_L = value_LP.sum(axis=1) / gpus
    step_L = value_LP.std(axis=1) / np.where(mean_L > 0, mean_L, 1.0) / swaps
    tolerance_L: Loads = np.minimum(step_L * STEPS, COARSEST)
    return tolerance_L


def _spread(expert_LP: npt.NDArray[np.integer], replicas_LE: Ints, node_G: Ints) -> _Spread:
    layers, experts = replicas_LE.shape
    nodes = int(node_G.max()) + 1
    node_P = np.repeat(node_G, expert_LP.shape[1] // len(node_G))
    cell_LP = (np.arange(layers)[:, None] * nodes + node_P) * experts + expert_LP
    held_LME = np.bincount(cell_LP.ravel(), minlength=layers * nodes * experts).reshape(
        layers, nodes, experts
    )
    return _Spread(node_G, held_LME, replicas_LE // nodes, -(-replicas_LE // nodes))


def _pairs(paced_RG: Loads, rows: Ints, hot_R: Ints, sweep: int) -> tuple[Ints, Ints]:
    """hot_N and cold_N: every cold column of these rows with one of the hot columns of its row. Which one changes from sweep to sweep."""
    gpus = paced_RG.shape[1]
    column_RG = lightest_first(paced_RG) + rows[:, None] * gpus
    place_RG = gpus - 1 - (np.arange(gpus) + sweep) % hot_R[:, None]
    cold_RG = np.arange(gpus) < gpus - hot_R[:, None]
    return np.take_along_axis(column_RG, place_RG, axis=1)[cold_RG], column_RG[cold_RG]


def _swap(state: _State, hot_N: Ints, cold_N: Ints, bundle_XB: Ints, spread: _Spread | None) -> Ints:
    """For every hot column the one swap with any of its partners that leaves the lower peak of the two, where it lowers the hot one. Returns the layers."""
    hot_total_N, cold_total_N, hot_speed_N, cold_speed_N = (
        state.total_C[hot_N],
        state.total_C[cold_N],
        state.speed_C[hot_N],
        state.speed_C[cold_N],
    )
    level_N = (hot_total_N + cold_total_N) / (
        hot_speed_N + cold_speed_N
    )  # load over speed of both, were loads divisible
    hot_expert_SN, cold_expert_SN = state.expert_SC[:, hot_N], state.expert_SC[:, cold_N]
    hot_stays_SN, cold_stays_SN = state.holds_CE[cold_N, hot_expert_SN], state.holds_CE[hot_N, cold_expert_SN]
    if spread is not None:
        hot_stays_SN |= _crowds(spread, hot_expert_SN, hot_N, cold_N, state.gpus)
        cold_stays_SN |= _crowds(spread, cold_expert_SN, cold_N, hot_N, state.gpus)
    give_SN = np.where(hot_stays_SN, np.inf, state.value_SC[:, hot_N])
    take_SN = np.where(cold_stays_SN, -np.inf, state.value_SC[:, cold_N])
    give_XN = (_sums(give_SN, bundle_XB) - (hot_total_N - level_N * hot_speed_N)).astype(
        np.float32
    )  # give = take moves the ideal amount
    take_XN = _sums(take_SN, bundle_XB).astype(np.float32)
    peak_N = level_N + _least_miss(give_XN, take_XN) / np.minimum(
        hot_speed_N, cold_speed_N
    )  # no less than that of the two after their best swap
    best_C = np.full(len(state.total_C), np.inf)
    np.minimum.at(best_C, hot_N, peak_N)
    pairs = np.flatnonzero((peak_N == best_C[hot_N]) & (peak_N < hot_total_N / hot_speed_N * (1 - 1e-9)))
    pairs = pairs[np.unique(hot_N[pairs], return_index=True)[1]]  # of equal ones the first
    miss_XXM = np.abs(give_XN[:, None, pairs] - take_XN[None, :, pairs])
    give_M, take_M = np.divmod(miss_XXM.reshape(len(give_XN) ** 2, len(pairs)).argmin(axis=0), len(give_XN))
    return (
        _exchange(state, bundle_XB[give_M].T, hot_N[pairs], bundle_XB[take_M].T, cold_N[pairs], spread)
        // state.gpus
    )


def _sums(value_SN: Loads, bundle_XB: Ints) -> Loads:
    sum_XN = value_SN[bundle_XB[:, 0]]
    for slot_X in bundle_XB.T[1:]:
        sum_XN += value_SN[slot_X]
    return sum_XN


def _least_miss(
    give_XN: npt.NDArray[np.float32], take_XN: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """miss_N: over all swaps of a pair, how far the amount moved is from the ideal one at best."""
    bundles, pairs = give_XN.shape
    miss_N = np.empty(pairs, dtype=np.float32)
    at_once = max(LARGEST_TABLE // bundles**2, 1)
    for start in range(0, pairs, at_once):
        some = slice(start, start + at_once)
        miss_XXM = give_XN[:, None, some] - take_XN[None, :, some]
        np.abs(miss_XXM, out=miss_XXM)
        miss_N[some] = miss_XXM.reshape(bundles * bundles, -1).min(axis=0)
    return miss_N


def _crowds(spread: _Spread, expert_SN: Ints, from_N: Ints, to_N: Ints, gpus: int) -> Flags:
    """Whether moving the expert would leave one node with too many of its replicas, or another with too few."""
    row_N, source_N, target_N = to_N // gpus, spread.node_G[from_N % gpus], spread.node_G[to_N % gpus]
    full_SN = spread.held_LME[row_N, target_N, expert_SN] >= spread.most_LE[row_N, expert_SN]
    scarce_SN = spread.held_LME[row_N, source_N, expert_SN] <= spread.least_LE[row_N, expert_SN]
    crowds_SN: Flags = (source_N != target_N) & (full_SN | scarce_SN)
    return crowds_SN


def _exchange(
    state: _State, give_BM: Ints, hot_M: Ints, take_BM: Ints, cold_M: Ints, spread: _Spread | None
) -> Ints:
    """Do these swaps, every column in one at most. Returns the hot columns."""
    expert_SC, value_SC = state.expert_SC, state.value_SC
    moved_M = value_SC[give_BM, hot_M].sum(axis=0) - value_SC[take_BM, cold_M].sum(axis=0)
    before_M, hot_after_M = (
        state.total_C[hot_M] / state.speed_C[hot_M],
        (state.total_C[hot_M] - moved_M) / state.speed_C[hot_M],
    )
    lower_M = (
        np.maximum(hot_after_M, (state.total_C[cold_M] + moved_M) / state.speed_C[cold_M]) < before_M
    )  # the table is in single precision
    if spread is not None:
        moving_XM = np.concatenate([expert_SC[give_BM, hot_M], expert_SC[take_BM, cold_M]])
        lower_M &= _once_a_layer(hot_M // state.gpus * state.holds_CE.shape[1] + moving_XM)
    give_BM, hot_M, take_BM, cold_M, moved_M = (
        give_BM[:, lower_M],
        hot_M[lower_M],
        take_BM[:, lower_M],
        cold_M[lower_M],
        moved_M[lower_M],
    )
    gone_BM, come_BM = expert_SC[give_BM, hot_M], expert_SC[take_BM, cold_M]
    if spread is not None:
        layer_M, hot_node_M, cold_node_M = (
            hot_M // state.gpus,
            spread.node_G[hot_M % state.gpus],
            spread.node_G[cold_M % state.gpus],
        )
        for node_M, expert_BM, change in (
            (hot_node_M, gone_BM, -1),
            (cold_node_M, gone_BM, 1),
            (cold_node_M, come_BM, -1),
            (hot_node_M, come_BM, 1),
        ):
            spread.held_LME[layer_M, node_M, expert_BM] += change
    state.holds_CE[hot_M, gone_BM] = state.holds_CE[cold_M, come_BM] = False
    state.holds_CE[hot_M, come_BM] = state.holds_CE[cold_M, gone_BM] = True
    expert_SC[give_BM, hot_M], expert_SC[take_BM, cold_M] = come_BM, gone_BM
    value_SC[give_BM, hot_M], value_SC[take_BM, cold_M] = value_SC[take_BM, cold_M], value_SC[give_BM, hot_M]
    state.total_C[hot_M] -= moved_M
    state.total_C[cold_M] += moved_M
    return hot_M


def _once_a_layer(key_XM: Ints) -> Flags:
    """Which swaps move no expert that one before them moves: two moves of one expert are judged apart and could crowd a node together."""
    first = np.zeros(key_XM.size, dtype=bool)
    first[np.unique(key_XM.ravel(), return_index=True)[1]] = True
    return np.asarray(first.reshape(key_XM.shape).all(axis=0))
