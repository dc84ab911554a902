"""Connecting: swaps after which shared experts join all GPUs of a layer, with the replica counts as they are.

The graph has GPUs and replicated experts as nodes and a slot of a replicated expert as an edge. A slot that
closes a cycle is spare: its GPU stays joined without it. Swapped with any slot of another island, it joins
the two: its expert's other replicas stay here, and what comes back takes its own island along. R >= G - 1
leaves a spare slot for as long as there are several islands, so this always ends.

Shapes: L layers, E experts, P slots, G GPUs.
"""

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.packing import Ints, Loads


def connect(
    load_LE: Loads,
    expert_LP: npt.NDArray[np.integer],
    gpus: int,
    speed_G: Loads | None = None,
    node_G: Ints | None = None,
) -> Ints:
    """expert_LP whose GPUs form one island in every layer.

    Each swap is the one that leaves the lower peak of its two GPUs, ties to the lower slots. With `node_G`,
    swaps within a node come before others: they leave every expert on the nodes it is on. ValueError where
    the replicas are too few: slots - experts < gpus - 1.
    """
    if expert_LP.shape[1] - load_LE.shape[1] < gpus - 1:
        raise ValueError(f"{expert_LP.shape[1]} slots for {load_LE.shape[1]} experts cannot join {gpus} GPUs")
    speed = np.ones(gpus) if speed_G is None else speed_G
    node = np.zeros(gpus, dtype=np.int64) if node_G is None else node_G
    rows = zip(load_LE, expert_LP.astype(np.int64), strict=True)
    return np.array([_connected(load_E, expert_P, speed, node) for load_E, expert_P in rows])


def _connected(load_E: Loads, expert_P: Ints, speed_G: Loads, node_G: Ints) -> Ints:
    gpus, slots = len(speed_G), len(expert_P)
    gpu_P = np.repeat(np.arange(gpus), slots // gpus)
    replicas_E = np.bincount(expert_P, minlength=len(load_E))
    while True:
        island_G, spare = _islands(expert_P, gpu_P, replicas_E)
        if (island_G == island_G[0]).all():
            return expert_P
        value_P = (load_E / replicas_E)[expert_P]
        total_G = value_P.reshape(gpus, -1).sum(axis=1)
        change_XP = value_P[None, :] - value_P[spare, None]
        here_G = gpu_P[spare]
        here_XP = (total_G[here_G, None] + change_XP) / speed_G[here_G, None]
        peak_XP = np.maximum(here_XP, (total_G[gpu_P] - change_XP) / speed_G[gpu_P])
        peak_XP[island_G[here_G, None] == island_G[gpu_P]] = np.inf
        inside_XP = node_G[here_G, None] == node_G[gpu_P]
        if np.isfinite(peak_XP[inside_XP]).any():
            peak_XP[~inside_XP] = np.inf
        one, other = divmod(int(peak_XP.argmin()), slots)
        expert_P[[spare[one], other]] = expert_P[[other, spare[one]]]


def _islands(expert_P: Ints, gpu_P: Ints, replicas_E: Ints) -> tuple[Ints, Ints]:
    """(the island of each GPU by its first GPU, slots that close a cycle)."""
    gpus = int(gpu_P[-1]) + 1
    parent = list(range(gpus + len(replicas_E)))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    spare = []
    for slot in np.flatnonzero(replicas_E[expert_P] > 1).tolist():
        gpu, expert = root(int(gpu_P[slot])), root(gpus + int(expert_P[slot]))
        if gpu == expert:
            spare.append(slot)
        parent[max(gpu, expert)] = min(gpu, expert)  # a GPU, where there is one, stays the root
    return np.array([root(gpu) for gpu in range(gpus)]), np.array(spare, dtype=np.int64)
