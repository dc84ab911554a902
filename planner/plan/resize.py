"""A change of GPUs: some are lost, let go or taken in, and the others keep what they hold.

Every GPU of before and after has one number: the one it had before, new ones behind. The GPUs that serve
afterwards are ranks 0, 1, ... in that order.

Shapes: L layers, P slots, G ranks afterwards.
"""

from dataclasses import dataclass, replace

import numpy as np

from planner.cost import EMPTY
from planner.load import spans
from planner.placement import Placement
from planner.topology import Topology

LOST, TAKEN_IN, LET_GO = "lost", "taken in", "let go"


@dataclass(frozen=True, eq=False)
class Resize:
    """`topology` has all the GPUs; `old` lies on it, EMPTY on those that are new or lost and send nothing."""

    topology: Topology
    old: Placement
    kept_G: tuple[int, ...]  # number of each rank afterwards
    changed: tuple[int, ...]  # numbers of the GPUs that are lost, taken in or let go
    how: str

    @property
    def left(self) -> Placement:
        """What the ranks afterwards hold, EMPTY where that is nothing."""
        cells_LGS = self.old.expert_LP.reshape(len(self.old.layer_ids), self.old.gpus, -1)[:, self.kept_G]
        rows_LP = cells_LGS.reshape(len(cells_LGS), -1)
        return Placement(rows_LP, self.old.layer_ids, len(self.kept_G))

    def spread(self, new: Placement) -> Placement:
        """The placement of the ranks afterwards on all the GPUs, EMPTY on those that are gone."""
        cells_LGS = np.full((len(new.layer_ids), self.old.gpus, new.slots_per_gpu), EMPTY, dtype=np.int64)
        cells_LGS[:, self.kept_G] = new.expert_LP.reshape(len(new.layer_ids), new.gpus, -1)
        return replace(self.old, expert_LP=cells_LGS.reshape(len(new.layer_ids), -1))

    def text(self) -> str:
        """Like '16 GPUs to 15 (GPU 3 lost)'."""
        before = self.old.gpus - (len(self.changed) if self.how == TAKEN_IN else 0)
        noun = "GPU" if len(self.changed) == 1 else "GPUs"
        return f"{before} GPUs to {len(self.kept_G)} ({noun} {spans(list(self.changed))} {self.how})"


def after_losing(topology: Topology, old: Placement, lost: tuple[int, ...]) -> Resize:
    """The GPUs of `topology` but those that are lost, with what they had in them."""
    kept = tuple(gpu for gpu in range(old.gpus) if gpu not in lost)
    return Resize(topology, _emptied(old, lost), kept, lost, LOST)


def grown(topology: Topology, old: Placement) -> Resize:
    """All GPUs of `topology`, the first of which serve now."""
    new = tuple(range(old.gpus, topology.gpu_count))
    more = len(new) * old.slots_per_gpu
    rows_LP = np.pad(old.expert_LP, ((0, 0), (0, more)), constant_values=EMPTY)
    wide = Placement(rows_LP, old.layer_ids, topology.gpu_count)
    return Resize(topology, wide, tuple(range(topology.gpu_count)), new, TAKEN_IN)


def shrunk(topology: Topology, old: Placement, gpus: int) -> Resize:
    """The first GPUs of `topology`; the others send what they hold before they go."""
    return Resize(topology, old, tuple(range(gpus)), tuple(range(gpus, old.gpus)), LET_GO)


def _emptied(old: Placement, gpus: tuple[int, ...]) -> Placement:
    cells_LGS = old.expert_LP.reshape(len(old.layer_ids), old.gpus, -1).copy()
    cells_LGS[:, list(gpus)] = EMPTY
    return replace(old, expert_LP=cells_LGS.reshape(len(old.layer_ids), -1))
