"""Transfers: for each slot that gets an expert new to its GPU, who sends the weights, and in which wave.

Shapes: P slots, G GPUs, T transfers.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.placement import Placement
from planner.plan.waves import waves
from planner.topology import Topology

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Transfers:
    """Transfer t: in wave `wave_T[t]`, GPU `source_T[t]` sends the weights of an expert of one layer to the
    GPU of slot `slot_T[t]`. Sorted by wave.
    """

    wave_T: Ints
    row_T: Ints  # row of the placement; its layer id is layer_ids[row]
    expert_T: Ints
    source_T: Ints
    slot_T: Ints
    target_T: Ints

    @property
    def waves(self) -> int:
        return int(self.wave_T.max(initial=-1)) + 1

    def __len__(self) -> int:
        return len(self.wave_T)


def transfers(topology: Topology, old: Placement, new: Placement) -> Transfers:
    """One transfer for each slot that differs.

    The sender holds the expert in `old`, in the same NVLink domain or else node where one does.
    Among equally near ones it is the one that has sent least so far, then the lowest.
    """
    row_T, slot_T = np.nonzero(old.expert_LP != new.expert_LP)
    expert_T, target_T = new.expert_LP[row_T, slot_T], new.gpu_P[slot_T]
    node_G, domain_G = topology.node_G, topology.domain_G
    sent_G = np.zeros(old.gpus, dtype=np.int64)
    source_T = np.empty(len(row_T), dtype=np.int64)
    asked = zip(row_T.tolist(), expert_T.tolist(), target_T.tolist(), strict=True)
    for at, (row, expert, target) in enumerate(asked):
        holders = old.gpu_P[old.expert_LP[row] == expert]
        far = np.where(node_G[holders] == node_G[target], 1, 2)
        far = np.where(domain_G[holders] == domain_G[target], 0, far)
        source_T[at] = min(zip(far.tolist(), sent_G[holders].tolist(), holders.tolist(), strict=True))[2]
        sent_G[source_T[at]] += 1
    wave_T = waves(source_T, target_T, old.gpus)
    order = np.lexsort((slot_T, row_T, wave_T))
    columns = (wave_T, row_T, expert_T, source_T, slot_T, target_T)
    return Transfers(*(column_T[order] for column_T in columns))
