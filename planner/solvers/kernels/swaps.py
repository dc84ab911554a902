"""Refinement: swaps between hot and cold GPUs, for all layers at once, until no GPU is above its goal.

A sweep looks at many pairs of GPUs, and each hot GPU makes the best swap it finds.

Shapes: L layers, E experts, G GPUs, S slots a GPU; C = L * G columns, one a GPU of a layer; N pairs of a hot
column and a cold one; X bundles of B slots that a swap may exchange.
"""

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.columns import Columns, Swaps, columns_of, exchange
from planner.solvers.kernels.dealing import lightest_first
from planner.solvers.kernels.goals import least_peaks, tolerances
from planner.solvers.kernels.packing import Ints, Loads, replica_values
from planner.solvers.kernels.spread import Spread, spread_of

PATIENCE = 16  # sweeps without a lower peak before a layer is given up
MOST_SLOTS_FOR_TWO = 16  # a GPU, for swaps of two replicas at once
LARGEST_TABLE = 4_000_000  # swaps looked at together; bounds memory at about 50 MB

Singles = npt.NDArray[np.float32]


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
    """expert_LP with the same replica counts and a busiest GPU (load over speed) no higher.

    No expert is twice on a GPU. With `node_G` replicas are no less spread over nodes; with `within_node` as
    well, none leaves its node, and every node is balanced on its own.
    """
    (layers, experts), speed_G = load_LE.shape, np.ones(gpus) if speed_G is None else speed_G
    value_LP, replicas_LE = replica_values(load_LE, expert_LP)
    if node_G is None or not within_node:
        spread = None if node_G is None else spread_of(expert_LP, replicas_LE, node_G)
        speed_LG = np.broadcast_to(speed_G[None], (layers, gpus))
        return _swept(columns_of(value_LP, expert_LP, speed_LG, experts), sweeps, spread)
    balanced_LGS = expert_LP.reshape(layers, gpus, -1).astype(np.int64)
    value_LGS = value_LP.reshape(layers, gpus, -1)
    for gpu_NX in _nodes_by_size(node_G):  # a node is a row of its own
        rows, on = layers * len(gpu_NX), gpu_NX.ravel()
        value_RP, expert_RP = value_LGS[:, on].reshape(rows, -1), balanced_LGS[:, on].reshape(rows, -1)
        columns = columns_of(value_RP, expert_RP, np.tile(speed_G[gpu_NX], (layers, 1)), experts)
        balanced_LGS[:, on] = _swept(columns, sweeps, None).reshape(layers, len(on), -1)
    return balanced_LGS.reshape(layers, -1)


def _nodes_by_size(node_G: Ints) -> list[Ints]:
    """For every size of node the GPUs of the nodes of that size, a row a node."""
    members = [np.flatnonzero(node_G == node) for node in np.unique(node_G)]
    sizes = sorted({len(some) for some in members})
    return [np.stack([some for some in members if len(some) == size]) for size in sizes]


def _swept(columns: Columns, sweeps: int, spread: Spread | None) -> Ints:
    """expert_LP after swaps that lower the load over speed of hot GPUs.

    They end where no GPU is above its goal or sweeps no longer help.
    """
    gpus, layers = columns.gpus, len(columns.total_C) // columns.gpus
    speed_LG = columns.speed_C.reshape(layers, gpus)
    value_LP = columns.value_SC.T.reshape(layers, -1)
    goal_L = least_peaks(value_LP, gpus, speed_LG) * (1 + tolerances(value_LP, gpus))
    lowest_L = np.full(layers, np.inf)
    waited_L, idle_L = np.zeros(layers, dtype=np.int64), np.zeros(layers, dtype=np.int64)
    bundles = _bundles(len(columns.value_SC))
    for sweep in range(sweeps if gpus > 1 else 0):
        paced_LG = columns.total_C.reshape(layers, gpus) / speed_LG
        peak_L, hot_L = paced_LG.max(axis=1), (paced_LG > goal_L[:, None]).sum(axis=1)
        waited_L = np.where(peak_L < lowest_L * (1 - 1e-9), 0, waited_L + 1)
        lowest_L = np.minimum(lowest_L, peak_L)
        open_L = (hot_L > 0) & (waited_L <= PATIENCE)
        # After as many idle sweeps as there are hot GPUs all pairs of GPUs have been tried
        gear_L = idle_L // np.maximum(hot_L, 1)
        some = [np.flatnonzero(open_L & (gear_L == gear)) for gear in range(len(bundles))]
        if not any(map(len, some)):
            break
        idle_L += 1
        for rows, bundle_XB in zip(some, bundles, strict=True):
            if len(rows):
                hot_N, cold_N = _pairs(paced_LG[rows], rows, np.minimum(hot_L[rows], gpus // 2), sweep)
                idle_L[_swap(columns, hot_N, cold_N, bundle_XB, spread)] = 0
    return columns.expert_SC.T.reshape(layers, -1)


def _bundles(slots: int) -> list[Ints]:
    """What one swap exchanges, as slots of a GPU.

    One replica, and, where that no longer helps and the table is not too large, two at once.
    """
    one_X1, two_X2 = np.arange(slots)[:, None], np.stack(np.triu_indices(slots, 1), axis=1)
    return [one_X1, two_X2] if 4 <= slots <= MOST_SLOTS_FOR_TWO else [one_X1]


def _pairs(paced_RG: Loads, rows: Ints, hot_R: Ints, sweep: int) -> tuple[Ints, Ints]:
    """hot_N and cold_N: every cold column of these rows with one of the hot columns of its row.

    Which one changes from sweep to sweep.
    """
    gpus = paced_RG.shape[1]
    column_RG = lightest_first(paced_RG) + rows[:, None] * gpus
    place_RG = gpus - 1 - (np.arange(gpus) + sweep) % hot_R[:, None]
    cold_RG = np.arange(gpus) < gpus - hot_R[:, None]
    return np.take_along_axis(column_RG, place_RG, axis=1)[cold_RG], column_RG[cold_RG]


def _swap(columns: Columns, hot_N: Ints, cold_N: Ints, bundle_XB: Ints, spread: Spread | None) -> Ints:
    """For every hot column the swap with any partner that leaves the lower peak of the two, where that helps.

    Returns the layers that changed.
    """
    hot_total_N, cold_total_N = columns.total_C[hot_N], columns.total_C[cold_N]
    hot_speed_N, cold_speed_N = columns.speed_C[hot_N], columns.speed_C[cold_N]
    # Load over speed of both, were loads divisible
    level_N = (hot_total_N + cold_total_N) / (hot_speed_N + cold_speed_N)
    give_SN, take_SN = _movable(columns, hot_N, cold_N, spread)
    # Where give = take the ideal amount is moved
    give_XN = (_sums(give_SN, bundle_XB) - (hot_total_N - level_N * hot_speed_N)).astype(np.float32)
    take_XN = _sums(take_SN, bundle_XB).astype(np.float32)
    # No less than that of the two after their best swap
    peak_N = level_N + _least_miss(give_XN, take_XN) / np.minimum(hot_speed_N, cold_speed_N)
    best_C = np.full(len(columns.total_C), np.inf)
    np.minimum.at(best_C, hot_N, peak_N)
    pairs = np.flatnonzero((peak_N == best_C[hot_N]) & (peak_N < hot_total_N / hot_speed_N * (1 - 1e-9)))
    pairs = pairs[np.unique(hot_N[pairs], return_index=True)[1]]  # of equal ones the first
    miss_XXM = np.abs(give_XN[:, None, pairs] - take_XN[None, :, pairs])
    give_M, take_M = np.divmod(miss_XXM.reshape(len(give_XN) ** 2, len(pairs)).argmin(axis=0), len(give_XN))
    swaps = Swaps(bundle_XB[give_M].T, hot_N[pairs], bundle_XB[take_M].T, cold_N[pairs])
    return exchange(columns, swaps, spread) // columns.gpus


def _movable(columns: Columns, hot_N: Ints, cold_N: Ints, spread: Spread | None) -> tuple[Loads, Loads]:
    """give_SN and take_SN: loads of both columns' slots; infinite, and minus so, for what must stay."""
    hot_expert_SN, cold_expert_SN = columns.expert_SC[:, hot_N], columns.expert_SC[:, cold_N]
    hot_stays_SN = columns.holds_CE[cold_N, hot_expert_SN]
    cold_stays_SN = columns.holds_CE[hot_N, cold_expert_SN]
    if spread is not None:
        hot_stays_SN |= spread.crowds(hot_expert_SN, hot_N, cold_N)
        cold_stays_SN |= spread.crowds(cold_expert_SN, cold_N, hot_N)
    give_SN = np.where(hot_stays_SN, np.inf, columns.value_SC[:, hot_N])
    return give_SN, np.where(cold_stays_SN, -np.inf, columns.value_SC[:, cold_N])


def _sums(value_SN: Loads, bundle_XB: Ints) -> Loads:
    sum_XN = value_SN[bundle_XB[:, 0]]
    for slot_X in bundle_XB.T[1:]:
        sum_XN += value_SN[slot_X]
    return sum_XN


def _least_miss(give_XN: Singles, take_XN: Singles) -> Singles:
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
