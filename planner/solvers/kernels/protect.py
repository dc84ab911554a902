"""Repair: bring every expert to a second node, by swaps that leave the others where one loss spares them.

Shapes: L layers, E experts, P slots, G GPUs, N nodes.
"""

import numpy as np
import numpy.typing as npt

from planner.problem import held_places_LE
from planner.solvers.kernels.packing import Ints, Loads


def on_two_nodes(load_LE: Loads, expert_LP: npt.NDArray[np.integer], node_G: Ints) -> Ints:
    """expert_LP with every expert on two nodes or more.

    Needs two slots for each, no expert twice on a GPU, and nodes that can take the experts twice.
    """
    repaired_LP = expert_LP.astype(np.int64)
    node_P = np.repeat(node_G, repaired_LP.shape[1] // len(node_G))
    for row, expert in np.argwhere(held_places_LE(repaired_LP, node_G, load_LE.shape[1]) < 2).tolist():
        # An earlier swap may have brought it along
        if len(np.unique(node_P[repaired_LP[row] == expert])) < 2:
            _bring_out(load_LE[row], repaired_LP[row], expert, node_P, len(node_G))
    return repaired_LP


def _bring_out(load_E: Loads, expert_P: Ints, expert: int, node_P: Ints, gpus: int) -> None:
    """Swap one copy of the expert to another node, changing `expert_P` in place.

    Of all swaps it is the one that leaves the lower peak of its two GPUs. A slot elsewhere qualifies if its
    expert stays on two nodes. There is always one, or else the slots elsewhere would hold different experts,
    each with a copy here and none of them this one: too few for what the caller promises. Only if that slot's
    expert also sits on every GPU here that holds this one no swap is possible; then it has copies enough to
    give the slot away.
    """
    home = int(node_P[expert_P == expert][0])
    gpu_P = np.arange(len(expert_P)) // (len(expert_P) // gpus)
    held_NE = np.zeros((int(node_P.max()) + 1, len(load_E)), dtype=np.int64)
    np.add.at(held_NE, (node_P, expert_P), 1)
    stays_P = _stays_P(held_NE, expert_P, node_P, home)
    value_P = (load_E / np.maximum(held_NE.sum(axis=0), 1))[expert_P]
    total_G = value_P.reshape(gpus, -1).sum(axis=1)
    copy_C = np.flatnonzero(expert_P == expert)
    meets_CP = (expert_P.reshape(gpus, -1)[gpu_P[copy_C]][:, :, None] == expert_P).any(axis=1)
    change_CP = value_P - value_P[copy_C, None]
    peak_CP = np.maximum(total_G[gpu_P[copy_C], None] + change_CP, total_G[gpu_P] - change_CP)
    peak_CP[meets_CP | ~stays_P] = np.inf
    best = int(peak_CP.argmin())
    if np.isfinite(peak_CP.flat[best]):
        one, other = int(copy_C[best // len(expert_P)]), best % len(expert_P)
        expert_P[[one, other]] = expert_P[[other, one]]
        return
    spare_P = stays_P & (held_NE[home, expert_P] > 0)
    expert_P[int(np.where(spare_P, total_G[gpu_P], np.inf).argmin())] = expert


def _stays_P(held_NE: Ints, expert_P: Ints, node_P: Ints, home: int) -> npt.NDArray[np.bool_]:
    """Slots on other nodes whose expert, swapped to `home`, is there and also elsewhere."""
    keeps_P = held_NE[node_P, expert_P] > 1  # the slot's node has another copy
    # Nodes with a copy, this slot's and home apart
    others_P = (held_NE > 0).sum(axis=0)[expert_P] - 1 - (held_NE[home, expert_P] > 0)
    stays_P: npt.NDArray[np.bool_] = (node_P != home) & (keeps_P | (others_P > 0))
    return stays_P
