"""Spread: how many copies of each expert sit on each node, and which moves would crowd a node.

Shapes: L layers, E experts, G GPUs, S slots a GPU, M nodes; N and X any moves, B of them in one swap.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.packing import Ints, tally

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Spread:
    """Copies of each expert on each node, and the least and most of them that keep it as spread as can be."""

    node_G: Ints
    held_LME: Ints
    least_LE: Ints
    most_LE: Ints

    @property
    def gpus(self) -> int:
        return len(self.node_G)

    def crowds(self, expert_SN: Ints, from_N: Ints, to_N: Ints) -> Flags:
        """Whether moving the expert leaves a node with too many of its replicas, or with too few."""
        row_N = to_N // self.gpus
        source_N, target_N = self.node_G[from_N % self.gpus], self.node_G[to_N % self.gpus]
        full_SN = self.held_LME[row_N, target_N, expert_SN] >= self.most_LE[row_N, expert_SN]
        scarce_SN = self.held_LME[row_N, source_N, expert_SN] <= self.least_LE[row_N, expert_SN]
        crowds_SN: Flags = (source_N != target_N) & (full_SN | scarce_SN)
        return crowds_SN

    def move(self, expert_BM: Ints, from_M: Ints, to_M: Ints) -> None:
        """Count these experts on the nodes that they came to."""
        layer_M = from_M // self.gpus
        self.held_LME[layer_M, self.node_G[from_M % self.gpus], expert_BM] -= 1
        self.held_LME[layer_M, self.node_G[to_M % self.gpus], expert_BM] += 1


def spread_of(expert_LP: npt.NDArray[np.integer], replicas_LE: Ints, node_G: Ints) -> Spread:
    layers, experts = replicas_LE.shape
    nodes = int(node_G.max()) + 1
    node_P = np.repeat(node_G, expert_LP.shape[1] // len(node_G))
    cell_LP = (np.arange(layers)[:, None] * nodes + node_P) * experts + expert_LP
    held_LME = tally(cell_LP, layers, nodes, experts)
    return Spread(node_G, held_LME, replicas_LE // nodes, -(-replicas_LE // nodes))


def once_a_layer(key_XM: Ints) -> Flags:
    """Which swaps move no expert that one before them moves.

    Two moves of one expert are judged apart and could crowd a node together.
    """
    first = np.zeros(key_XM.size, dtype=bool)
    first[np.unique(key_XM.ravel(), return_index=True)[1]] = True
    return np.asarray(first.reshape(key_XM.shape).all(axis=0))
