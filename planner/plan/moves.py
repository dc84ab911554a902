"""Moving from one placement to the next: which slots change, and how long the links take.

A move is a slot that gets an expert that its GPU did not hold: its weights have to travel (`transfers`), or
to be read where nobody holds them. Transfers are cut into waves, one after the other.

Shapes: L layers, P slots, G GPUs, X GPUs of all layers, S slots of a GPU, W waves, R resources.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.placement import Placement
from planner.plan.resize import Resize
from planner.plan.transfers import Ints, Transfers, transfers
from planner.problem import Problem

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Moves:
    """From the placement that runs to the planned one.

    Bytes and seconds are of whole experts over the links' full rates, nothing else on them.
    """

    previous: str  # the file it was read from
    most: int | None  # moves allowed; None is no limit
    slots: int  # over all layers
    layer_ids: tuple[int, ...]
    transfers: Transfers
    bytes_W: Floats
    seconds_W: Floats
    most_received_bytes: float  # by one GPU, held apart: every transfer reads the placement as it was
    read_bytes: float = 0.0  # from disk, experts that no GPU holds any more
    resize: Resize | None = None  # where GPUs were lost, let go or taken in: slots and GPUs are counted by it
    needed: int = 0  # of the moves, for every expert to have a slot and no slot to be empty

    @property
    def moved(self) -> int:
        """Slots that get an expert new to their GPU, sent or read."""
        return len(self.transfers) + len(self.transfers.reads)

    @property
    def share(self) -> float:
        """Moved slots as a share of all."""
        return self.moved / self.slots

    @property
    def total_bytes(self) -> float:
        return float(self.bytes_W.sum())

    @property
    def seconds(self) -> float:
        """One wave after the other."""
        return float(self.seconds_W.sum())


def aligned(old: Placement, new: Placement) -> Placement:
    """`new` with every expert that stays on its GPU in its old slot; newcomers fill the other slots by id.

    So exactly the slots that differ are moves.

    >>> old, new = (Placement(np.array([row]), (0,), 2) for row in ([3, 0, 1, 2], [0, 1, 2, 3]))
    >>> aligned(old, new).expert_LP.tolist()
    [[1, 0, 3, 2]]
    """
    layers, gpus, size = len(old.expert_LP), old.gpus, old.slots_per_gpu
    old_XS, new_XS = (placement.expert_LP.reshape(layers * gpus, size) for placement in (old, new))
    new_XS = np.sort(new_XS, axis=1)
    same_XSS = old_XS[:, :, None] == new_XS[:, None, :]
    stays_XS, came_XS = same_XSS.any(axis=2), ~same_XSS.any(axis=1)
    found_XS = np.where(stays_XS, old_XS, 0)
    found_XS[~stays_XS] = new_XS[came_XS]  # both in order of GPU, and as many of each on every GPU
    return Placement(found_XS.reshape(layers, -1), new.layer_ids, gpus)


def moves_L(old: Placement, new: Placement) -> Ints:
    """How many slots of each layer get an expert that was not on their GPU.

    Their order on a GPU does not matter.
    """
    layers, gpus = len(old.expert_LP), old.gpus
    old_LGS, new_LGS = (placement.expert_LP.reshape(layers, gpus, -1) for placement in (old, new))
    return np.asarray((old_LGS[:, :, :, None] != new_LGS[:, :, None, :]).all(axis=2).sum(axis=(1, 2)))


def plan_moves(
    problem: Problem,
    old: Placement,
    new: Placement,
    previous: str,
    most: int | None = None,
    resize: Resize | None = None,
) -> Moves:
    """The transfers from `old` to `new`, which is `aligned` to it, in waves with their bytes and seconds.

    With `resize`, from what the GPUs held before it, whatever `old` says.
    """
    topology = problem.topology
    if resize is not None:
        topology, old, new = resize.topology, resize.old, resize.spread(new)
    found = transfers(topology, old, new)
    expert_bytes, capacity_R, gpus = problem.model.expert_bytes, topology.capacity_R, topology.gpu_count
    seconds_W = np.zeros(found.waves)
    for wave in range(found.waves):
        bytes_GG = np.zeros((gpus, gpus))
        bytes_GG[found.source_T[found.wave_T == wave], found.target_T[found.wave_T == wave]] = expert_bytes
        seconds_W[wave] = (topology.resource_bytes(bytes_GG) / capacity_R).max(initial=0.0)
    received_T = np.concatenate([found.target_T, found.reads.target_D])
    return Moves(
        previous,
        most,
        slots=problem.slots * len(old.layer_ids),
        layer_ids=old.layer_ids,
        transfers=found,
        bytes_W=np.bincount(found.wave_T, minlength=found.waves).astype(np.float64) * expert_bytes,
        seconds_W=seconds_W,
        most_received_bytes=float(np.bincount(received_T).max(initial=0) * expert_bytes),
        read_bytes=len(found.reads) * expert_bytes,
        resize=resize,
    )


def replayed(old: Placement, found: Transfers) -> Placement:
    """`old` after the transfers and reads."""
    expert_LP, reads = old.expert_LP.copy(), found.reads
    expert_LP[found.row_T, found.slot_T] = found.expert_T
    expert_LP[reads.row_D, reads.slot_D] = reads.expert_D
    return replace(old, expert_LP=expert_LP)


def steps_to_pay(moves: Moves, saved_seconds: float | None) -> int | None:
    """After how many steps the moves have saved what they took; None where they save nothing."""
    if not saved_seconds or saved_seconds <= 0:
        return None
    return math.ceil(moves.seconds / saved_seconds)
