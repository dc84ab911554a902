"""Refinement: swap two replicas between a hot and a cold GPU, for many pairs of GPUs and all layers at once, until the busiest GPU is near its goal.

Shapes: L layers, E experts, G GPUs, S slots a GPU, N nodes; C = L * G columns, one a GPU of a layer; H hot columns, K cold partners of each.
The slot axis comes first, because NumPy is several times faster when the long axis is last.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.solve.packing import Ints, Loads, replica_values

PARTNERS = (3, 3, 7, 15)  # cold GPUs tried for each hot one, sweep by sweep: many hot GPUs with few partners first, then few with many
TOLERANCE = 5e-4  # above its goal a layer is left alone
PATIENCE = 16  # sweeps without a lower peak before a layer is given up
LARGEST_TABLE = 4_000_000  # swaps looked at together; bounds memory at about 100 MB


@dataclass
class _State:
    """What the sweeps change, and how fast each column is."""

    expert_SC: npt.NDArray[np.int32]
    value_SC: Loads
    total_C: Loads
    speed_C: Loads
    gpus: int


@dataclass(frozen=True)
class _Spread:
    """Copies of each expert on each node, and the least and most of them that keep an expert spread as equally as can be."""

    node_G: Ints
    held_LNE: Ints
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
        return _swept(value_LP, expert_LP, np.broadcast_to(speed_1G, (layers, gpus)), sweeps, spread)
    balanced_LGS, value_LGS = expert_LP.reshape(layers, gpus, -1).astype(np.int64), value_LP.reshape(layers, gpus, -1)
    for gpu_NX in _nodes_by_size(node_G):  # a node is a row of its own
        rows, on = layers * len(gpu_NX), gpu_NX.ravel()
        speed_RX = np.tile(speed_1G[0, gpu_NX], (layers, 1))
        swept_RY = _swept(value_LGS[:, on].reshape(rows, -1), balanced_LGS[:, on].reshape(rows, -1), speed_RX, sweeps, None)
        balanced_LGS[:, on] = swept_RY.reshape(layers, len(on), -1)
    return balanced_LGS.reshape(layers, -1)


def _nodes_by_size(node_G: Ints) -> list[Ints]:
    """For every size of node the GPUs of the nodes of that size, a row a node."""
    members = [np.flatnonzero(node_G == node) for node in np.unique(node_G)]
    return [np.stack([some for some in members if len(some) == size]) for size in sorted({len(some) for some in members})]


def _swept(value_LP: Loads, expert_LP: npt.NDArray[np.integer], speed_LG: Loads, sweeps: int, spread: _Spread | None) -> Ints:
    """expert_LP after swaps that lower the load over speed of hot GPUs, until a layer is at its goal or sweeps no longer help."""
    layers, gpus = speed_LG.shape
    value_SC = np.ascontiguousarray(value_LP.reshape(layers * gpus, -1).T)
    expert_SC = np.ascontiguousarray(expert_LP.reshape(layers * gpus, -1).T.astype(np.int32))
    state = _State(expert_SC, value_SC, value_SC.sum(axis=0), speed_LG.ravel(), gpus)
    goal_L = least_peaks(value_LP, gpus, speed_LG) * (1 + TOLERANCE)
    lowest_L, waited_L = np.full(layers, np.inf), np.zeros(layers, dtype=np.int64)
    for sweep in range(sweeps if gpus > 1 else 0):
        paced_LG = (state.total_C / state.speed_C).reshape(layers, gpus)
        peak_L = paced_LG.max(axis=1)
        waited_L = np.where(peak_L < lowest_L * (1 - 1e-9), 0, waited_L + 1)
        lowest_L = np.minimum(lowest_L, peak_L)
        rows = np.flatnonzero((peak_L > goal_L) & (waited_L <= PATIENCE))
        if not len(rows):
            break
        for hot_H, cold_KH in _pairings(paced_LG, rows, sweep, len(state.value_SC)):
            _swap(state, hot_H, cold_KH, spread)
    return state.expert_SC.T.reshape(layers, -1).astype(np.int64)


def least_peaks(value_LP: Loads, gpus: int, speed_LG: Loads | None = None) -> Loads:
    """A peak (load over speed) that no packing of these replicas beats: the mean, or the largest replica with the smallest company on the fastest GPU."""
    speed_LG = np.ones((1, gpus)) if speed_LG is None else speed_LG
    ordered_LP = np.sort(value_LP, axis=1)
    company_L = ordered_LP[:, : value_LP.shape[1] // gpus - 1].sum(axis=1)
    mean_L, largest_L = value_LP.sum(axis=1) / speed_LG.sum(axis=1), (ordered_LP[:, -1] + company_L) / speed_LG.max(axis=1)
    least_L: Loads = np.maximum(mean_L, largest_L)
    return least_L


def _spread(expert_LP: npt.NDArray[np.integer], replicas_LE: Ints, node_G: Ints) -> _Spread:
    layers, experts = replicas_LE.shape
    nodes = int(node_G.max()) + 1
    node_P = np.repeat(node_G, expert_LP.shape[1] // len(node_G))
    cell_LP = (np.arange(layers)[:, None] * nodes + node_P) * experts + expert_LP
    held_LNE = np.bincount(cell_LP.ravel(), minlength=layers * nodes * experts).reshape(layers, nodes, experts)
    return _Spread(node_G, held_LNE, replicas_LE // nodes, -(-replicas_LE // nodes))


def _pairings(paced_LG: Loads, rows: Ints, sweep: int, slots: int) -> list[tuple[Ints, Ints]]:
    """Hot columns and their cold partners, every column in at most one group. Partners rotate from sweep to sweep."""
    gpus = paced_LG.shape[1]
    partners = min(PARTNERS[sweep % len(PARTNERS)], gpus - 1)
    hot = gpus // (partners + 1)
    at_once = max(LARGEST_TABLE // (hot * partners * slots**2), 1)
    groups = []
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        column_RG = np.argsort(paced_LG[some], axis=1, kind="stable") + some[:, None] * gpus
        rotated = (np.arange(hot * partners) + sweep) % (gpus - hot)
        groups.append((column_RG[:, gpus - hot :].T.ravel(), column_RG[:, rotated].T.reshape(partners, -1)))
    return groups


def _swap(state: _State, hot_H: Ints, cold_KH: Ints, spread: _Spread | None) -> None:
    """For every hot column the one swap with any of its partners that leaves the lower peak of the two, where it lowers the hot one."""
    slots = len(state.value_SC)
    hot_expert_SKH, cold_expert_SKH = state.expert_SC[:, hot_H][:, None], state.expert_SC[:, cold_KH]
    same_SSKH = hot_expert_SKH[:, None] == cold_expert_SKH[None]
    hot_stays_SKH, cold_stays_SKH = same_SSKH.any(axis=1), same_SSKH.any(axis=0)
    if spread is not None:
        hot_stays_SKH |= _crowds(spread, hot_expert_SKH, hot_H[None], cold_KH, state.gpus)
        cold_stays_SKH |= _crowds(spread, cold_expert_SKH, cold_KH, hot_H[None], state.gpus)
    hot_total_H, cold_total_KH = state.total_C[hot_H], state.total_C[cold_KH]
    hot_speed_H, cold_speed_KH = state.speed_C[hot_H], state.speed_C[cold_KH]
    level_KH = (hot_total_H + cold_total_KH) / (hot_speed_H + cold_speed_KH)  # load over speed of both, were loads divisible
    ideal_KH = hot_total_H - level_KH * hot_speed_H  # the amount that moves then
    give_SKH = np.where(hot_stays_SKH, np.inf, state.value_SC[:, hot_H][:, None] - ideal_KH)
    take_SKH = np.where(cold_stays_SKH, -np.inf, state.value_SC[:, cold_KH])
    miss_SSKH = give_SKH[:, None] - take_SKH[None]
    np.abs(miss_SSKH, out=miss_SSKH)
    miss_XKH = miss_SSKH.reshape(slots * slots, *cold_KH.shape)
    peak_KH = level_KH + miss_XKH.min(axis=0) / np.minimum(hot_speed_H, cold_speed_KH)  # no less than that of the two GPUs after their best swap
    partner_H = peak_KH.argmin(axis=0)
    better = np.flatnonzero(peak_KH[partner_H, np.arange(len(hot_H))] < hot_total_H / hot_speed_H * (1 - 1e-9))
    partner = partner_H[better]
    give, take = np.divmod(miss_XKH[:, partner, better].argmin(axis=0), slots)
    _exchange(state, give, hot_H[better], take, cold_KH[partner, better], spread)


def _crowds(spread: _Spread, expert_SKH: npt.NDArray[np.int32], from_KH: Ints, to_KH: Ints, gpus: int) -> npt.NDArray[np.bool_]:
    """Whether moving the expert would leave one node with too many of its replicas, or another with too few."""
    row_KH, source_KH, target_KH = to_KH // gpus, spread.node_G[from_KH % gpus], spread.node_G[to_KH % gpus]
    full = spread.held_LNE[row_KH, target_KH, expert_SKH] >= spread.most_LE[row_KH, expert_SKH]
    scarce = spread.held_LNE[row_KH, source_KH, expert_SKH] <= spread.least_LE[row_KH, expert_SKH]
    crowds: npt.NDArray[np.bool_] = (source_KH != target_KH) & (full | scarce)
    return crowds


def _exchange(state: _State, give: Ints, hot: Ints, take: Ints, cold: Ints, spread: _Spread | None) -> None:
    if spread is not None:  # two moves of one expert in one sweep were judged apart and could crowd a node together
        gpus = state.gpus
        layer = hot // gpus
        experts = spread.most_LE.shape[1]
        keys = np.stack([layer * experts + state.expert_SC[give, hot], layer * experts + state.expert_SC[take, cold]])
        first = np.zeros(keys.size, dtype=bool)
        first[np.unique(keys.ravel(), return_index=True)[1]] = True
        kept = first.reshape(keys.shape).all(axis=0)
        give, hot, take, cold, layer, keys = give[kept], hot[kept], take[kept], cold[kept], layer[kept], keys[:, kept]
        hot_node, cold_node, (gone, come) = spread.node_G[hot % gpus], spread.node_G[cold % gpus], keys % experts
        for node, expert, change in ((hot_node, gone, -1), (cold_node, gone, 1), (cold_node, come, -1), (hot_node, come, 1)):
            spread.held_LNE[layer, node, expert] += change
    expert_SC, value_SC = state.expert_SC, state.value_SC
    moved = value_SC[give, hot] - value_SC[take, cold]
    expert_SC[give, hot], expert_SC[take, cold] = expert_SC[take, cold], expert_SC[give, hot]
    value_SC[give, hot], value_SC[take, cold] = value_SC[take, cold], value_SC[give, hot]
    state.total_C[hot] -= moved
    state.total_C[cold] += moved
