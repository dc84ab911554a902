"""Transfers: for each slot that gets an expert new to its GPU, who sends the weights, and in which wave.

After a loss nobody may hold the expert any more: then it is read from disk.

Shapes: P slots, G GPUs, T transfers, D reads from disk.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.cost import EMPTY
from planner.placement import Placement
from planner.plan.waves import waves
from planner.topology import Topology

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Reads:
    """Read d: the GPU of slot `slot_D[d]` reads the weights of an expert of one layer that no GPU holds."""

    row_D: Ints
    expert_D: Ints
    slot_D: Ints
    target_D: Ints

    def __len__(self) -> int:
        return len(self.row_D)


_NONE = np.zeros(0, dtype=np.int64)
NO_READS = Reads(_NONE, _NONE, _NONE, _NONE)


@dataclass(frozen=True, eq=False)
class Transfers:
    """Transfer t: in wave `wave_T[t]`, GPU `source_T[t]` sends the weights of an expert of one layer to the
    GPU of slot `slot_T[t]`. Sorted by wave. What nobody can send is in `reads`.
    """

    wave_T: Ints
    row_T: Ints  # row of the placement; its layer id is layer_ids[row]
    expert_T: Ints
    source_T: Ints
    slot_T: Ints
    target_T: Ints
    reads: Reads = NO_READS

    @property
    def waves(self) -> int:
        return int(self.wave_T.max(initial=-1)) + 1

    def __len__(self) -> int:
        return len(self.wave_T)


def transfers(topology: Topology, old: Placement, new: Placement) -> Transfers:
    """One transfer or read for each slot that differs; a slot that is empty in `new` needs neither.

    The sender holds the expert in `old`, in the same NVLink domain or else node where one does.
    Among equally near ones it is the one that has sent least so far, then the lowest.
    """
    row_T, slot_T = np.nonzero((old.expert_LP != new.expert_LP) & (new.expert_LP != EMPTY))
    expert_T, target_T = new.expert_LP[row_T, slot_T], new.gpu_P[slot_T]
    source_T = _senders(topology, old, row_T, expert_T, target_T)
    sent_T = source_T >= 0
    reads = Reads(row_T[~sent_T], expert_T[~sent_T], slot_T[~sent_T], target_T[~sent_T])
    row_T, expert_T, slot_T = row_T[sent_T], expert_T[sent_T], slot_T[sent_T]
    source_T, target_T = source_T[sent_T], target_T[sent_T]
    wave_T = waves(source_T, target_T, old.gpus)
    order = np.lexsort((slot_T, row_T, wave_T))
    return Transfers(
        wave_T[order], row_T[order], expert_T[order], source_T[order], slot_T[order], target_T[order], reads
    )


def _senders(topology: Topology, old: Placement, row_T: Ints, expert_T: Ints, target_T: Ints) -> Ints:
    """source_T; -1 where no GPU holds the expert."""
    node_G, domain_G = topology.node_G, topology.domain_G
    sent_G = np.zeros(old.gpus, dtype=np.int64)
    source_T = np.full(len(row_T), -1, dtype=np.int64)
    asked = zip(row_T.tolist(), expert_T.tolist(), target_T.tolist(), strict=True)
    for at, (row, expert, target) in enumerate(asked):
        holders = old.gpu_P[old.expert_LP[row] == expert]
        if not len(holders):
            continue
        far = np.where(node_G[holders] == node_G[target], 1, 2)
        far = np.where(domain_G[holders] == domain_G[target], 0, far)
        source_T[at] = min(zip(far.tolist(), sent_G[holders].tolist(), holders.tolist(), strict=True))[2]
        sent_G[source_T[at]] += 1
    return source_T
