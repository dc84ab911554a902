"""Kernels on plain arrays: how many replicas each expert gets, and which GPU each of them goes to.

All layers at once.

Shapes: L layers (any rows), E experts, P slots, G GPUs, S = P / G slots a GPU, N nodes. Loads are in any
unit, one unit a layer.
Ties fall by id, and every sort is stable, so that the answer is the same on every machine.
"""

import math

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.dealing import deal

Loads = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

HALVINGS = 8  # of the threshold's bracket; what they leave open is handed out one by one


def replicate(load_LE: Loads, slots: int, most_per_expert: int, least_per_expert: int | Ints = 1) -> Ints:
    """replicas_LE that minimise the largest load of one replica, `slots` in all.

    An expert gets `least_per_expert` (or as many as least_LE says) to `most_per_expert`. The same as giving
    slot after slot to the largest load / replicas, but by water-filling: below a threshold T every expert
    needs ceil(load / T). An expert without load counts as a trace of one, so that spare slots spread evenly.
    """
    experts = load_LE.shape[1]
    least_LE = np.broadcast_to(np.asarray(least_per_expert, dtype=np.int64), load_LE.shape)
    least, needed = int(least_LE.min()), int(least_LE.sum(axis=1).max())
    fits = needed <= slots <= experts * most_per_expert
    if not (fits and least >= 1 and least_LE.max() <= most_per_expert):
        raise ValueError(
            f"{slots} slots cannot give each of {experts} experts between {least} and {most_per_expert} "
            f"replicas, {needed} at least in all"
        )
    mean_L1 = load_LE.mean(axis=1, keepdims=True)
    load_LE = np.maximum(load_LE, np.where(mean_L1 > 0, mean_L1 * 1e-9, 1.0))
    replicas_LE = _filled_below(load_LE, slots, least_LE, most_per_expert)
    _hand_out(load_LE, replicas_LE, slots, most_per_expert)
    return replicas_LE


def _hand_out(load_LE: Loads, replicas_LE: Ints, slots: int, most_per_expert: int) -> None:
    """Slot after slot that is left to the heaviest replica, changing `replicas_LE` in place."""
    priority_LE = np.where(replicas_LE < most_per_expert, load_LE / replicas_LE, -1.0)
    left_L = slots - replicas_LE.sum(axis=1)
    rows = np.flatnonzero(left_L)
    while len(rows):
        chosen = priority_LE[rows].argmax(axis=1)
        replicas, load = replicas_LE[rows, chosen] + 1, load_LE[rows, chosen]
        replicas_LE[rows, chosen] = replicas
        priority_LE[rows, chosen] = np.where(replicas < most_per_expert, load / replicas, -1.0)
        left_L[rows] -= 1
        rows = rows[left_L[rows] > 0]


def _filled_below(load_LE: Loads, slots: int, least_LE: Ints, most_per_expert: int) -> Ints:
    """The counts of the smallest threshold tried that fits the slots; nowhere above the final counts."""
    spare_L1 = slots - least_LE.sum(axis=1, keepdims=True)
    if spare_L1.max() < HALVINGS:
        return least_LE.copy()
    total_L1 = load_LE.sum(axis=1, keepdims=True)
    fits_L1, exceeds_L1 = spare_L1 / total_L1, slots / total_L1  # 1 / T: at the first the counts always fit
    for _ in range(HALVINGS):
        middle_L1 = (fits_L1 + exceeds_L1) / 2
        fit_L1 = _counts(load_LE, middle_L1, least_LE, most_per_expert).sum(axis=1, keepdims=True) <= slots
        fits_L1, exceeds_L1 = np.where(fit_L1, middle_L1, fits_L1), np.where(fit_L1, exceeds_L1, middle_L1)
    return _counts(load_LE, fits_L1, least_LE, most_per_expert).astype(np.int64)


def _counts(load_LE: Loads, inverse_L1: Loads, least_LE: Ints, most_per_expert: int) -> Loads:
    """The fewest replicas at which none weighs over 1 / inverse."""
    counts_LE = load_LE * (inverse_L1 * (1 - 1e-12))  # rounding must never ask for one too many
    np.ceil(counts_LE, out=counts_LE)
    np.maximum(counts_LE, least_LE, out=counts_LE)
    return np.minimum(counts_LE, most_per_expert, out=counts_LE)


def pack(
    load_LE: Loads, replicas_LE: Ints, gpus: int, node_G: Ints | None = None, *, speed_G: Loads | None = None
) -> Ints:
    """expert_LP with these replica counts: no expert twice on a GPU, load over speed of GPUs near even.

    Experts of a GPU are in no order. With `node_G` the replicas of an expert also spread over nodes: on
    distinct ones, or as equally as can be where they outnumber the nodes. Nodes of unequal size cannot all
    take the same share, so there the nodes are ignored. Without `speed_G` GPUs are equally fast.
    """
    layers, value_LE = len(load_LE), load_LE / replicas_LE
    speed_1G = np.ones((1, gpus)) if speed_G is None else speed_G[None]
    if node_G is None or not has_even_nodes(node_G):
        return deal(value_LE, replicas_LE, np.broadcast_to(speed_1G, (layers, gpus))).reshape(layers, -1)
    nodes, by_node_G = int(node_G.max()) + 1, np.argsort(node_G, kind="stable")
    speed_NX = speed_1G[0, by_node_G].reshape(nodes, -1)
    on_node_NE = _over_nodes(value_LE, replicas_LE, speed_NX.sum(axis=1))
    expert_NS = deal(np.repeat(value_LE, nodes, axis=0), on_node_NE, np.tile(speed_NX, (layers, 1)))
    expert_LGS = expert_NS.reshape(layers, gpus, -1)
    by_rank_LGS = np.empty_like(expert_LGS)
    by_rank_LGS[:, by_node_G] = expert_LGS
    return by_rank_LGS.reshape(layers, -1)


def _over_nodes(value_LE: Loads, replicas_LE: Ints, speed_N: Loads) -> Ints:
    """How many replicas of each expert every node of every layer gets, a row a node."""
    (layers, experts), nodes = value_LE.shape, len(speed_N)
    bundles = -(-int(replicas_LE.max()) // nodes)  # a node may meet each bundle of an expert's replicas once
    times_LEB = np.clip(replicas_LE[:, :, None] - nodes * np.arange(bundles), 0, nodes)
    speed_LN = np.broadcast_to(speed_N, (layers, nodes))
    bundle_LNX = deal(np.repeat(value_LE, bundles, axis=1), times_LEB.reshape(layers, -1), speed_LN)
    first_LN1 = np.arange(layers * nodes).reshape(layers, nodes, 1) * experts
    return tally(first_LN1 + bundle_LNX // bundles, layers * nodes, experts)


def has_even_nodes(node_G: Ints) -> bool:
    return len(set(np.bincount(node_G).tolist())) == 1


def tally(cell: Ints, *shape: int) -> Ints:
    """How often each cell of a table of this shape is named, by its position."""
    return np.bincount(cell.ravel(), minlength=math.prod(shape)).reshape(shape)


def replica_values(load_LE: Loads, expert_LP: npt.NDArray[np.integer]) -> tuple[Loads, Ints]:
    """value_LP, the load of each slot where replicas share evenly, and replicas_LE."""
    layers, experts = load_LE.shape
    row_L1 = np.arange(layers)[:, None]
    replicas_LE = tally(row_L1 * experts + expert_LP, layers, experts)
    return (load_LE / np.maximum(replicas_LE, 1))[row_L1, expert_LP], replicas_LE


def peaks(
    load_LE: Loads, expert_LP: npt.NDArray[np.integer], gpus: int, speed_G: Loads | None = None
) -> Loads:
    """peak_L: load over speed of the busiest GPU of each layer where replicas share evenly."""
    value_LP, _ = replica_values(load_LE, expert_LP)
    load_LG = value_LP.reshape(len(load_LE), gpus, -1).sum(axis=2)
    peak_L: Loads = (load_LG if speed_G is None else load_LG / speed_G).max(axis=1)
    return peak_L


def in_order(expert_LP: npt.NDArray[np.integer], gpus: int) -> Ints:
    """The experts of each GPU in order of id, so that equal placements are equal bytes."""
    layers = len(expert_LP)
    return np.sort(expert_LP.reshape(layers, gpus, -1), axis=2).reshape(layers, -1).astype(np.int64)
