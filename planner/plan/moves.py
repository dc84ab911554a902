"""Moving from one placement to the next: which slots get an expert that their GPU did not hold, who sends it, in which waves, and how long the links take.

A move is such a slot: its weights have to travel. Transfers are cut into waves in which no GPU sends twice and none receives twice. They are the edges of a
bipartite multigraph (senders, receivers), and König's theorem says that as many waves suffice as the busiest GPU has transfers to send or to receive.

Shapes: L layers, P slots, G GPUs, E experts, T transfers, W waves, R resources.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.placement import Placement
from planner.problem import Problem
from planner.topology import Topology

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Transfers:
    """Transfer t: in wave `wave_T[t]`, GPU `source_T[t]` sends the weights of an expert of one layer to the GPU of slot `slot_T[t]`. Sorted by wave."""

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


@dataclass(frozen=True, eq=False)
class Moves:
    """From the placement that runs to the planned one. Bytes and seconds are of whole experts over the links' full rates, nothing else on them."""

    previous: str  # the file it was read from
    most: int | None  # moves allowed; None is no limit
    slots: int  # over all layers
    layer_ids: tuple[int, ...]
    transfers: Transfers
    bytes_W: Floats
    seconds_W: Floats
    most_received_bytes: (
        float  # by one GPU: what it holds apart, for every transfer reads the placement as it was
    )

    @property
    def share(self) -> float:
        """Moved slots as a share of all."""
        return len(self.transfers) / self.slots

    @property
    def total_bytes(self) -> float:
        return float(self.bytes_W.sum())

    @property
    def seconds(self) -> float:
        """One wave after the other."""
        return float(self.seconds_W.sum())


def aligned(old: Placement, new: Placement) -> Placement:
    """`new` with every expert that stays on its GPU in its old slot; newcomers fill the other slots by id. So exactly the slots that differ are moves.

    >>> old, new = (Placement(np.array([row]), (0,), 2) for row in ([3, 0, 1, 2], [0, 1, 2, 3]))
    >>> aligned(old, new).expert_LP.tolist()
    [[1, 0, 3, 2]]
    """
    layers, gpus, size = len(old.expert_LP), old.gpus, old.slots_per_gpu
    old_XS, new_XS = (
        old.expert_LP.reshape(layers * gpus, size),
        np.sort(new.expert_LP.reshape(layers * gpus, size), axis=1),
    )
    same_XSS = old_XS[:, :, None] == new_XS[:, None, :]
    stays_XS, came_XS = same_XSS.any(axis=2), ~same_XSS.any(axis=1)
    found_XS = np.where(stays_XS, old_XS, 0)
    found_XS[~stays_XS] = new_XS[came_XS]  # both in order of GPU, and as many of each on every GPU
    return Placement(found_XS.reshape(layers, -1), new.layer_ids, gpus)


def moves_L(old: Placement, new: Placement) -> Ints:
    """How many slots of each layer get an expert that was not on their GPU. Their order on a GPU does not matter."""
    layers, gpus = len(old.expert_LP), old.gpus
    old_LGS, new_LGS = (placement.expert_LP.reshape(layers, gpus, -1) for placement in (old, new))
    return np.asarray((old_LGS[:, :, :, None] != new_LGS[:, :, None, :]).all(axis=2).sum(axis=(1, 2)))


def plan_moves(
    problem: Problem, old: Placement, new: Placement, previous: str, most: int | None = None
) -> Moves:
    """The transfers from `old` to `new`, which is `aligned` to it, in waves with their bytes and seconds."""
    found = transfers(problem.topology, old, new)
    expert_bytes, capacity_R = problem.model.expert_bytes, problem.topology.capacity_R
    bytes_W, seconds_W = (
        np.bincount(found.wave_T, minlength=found.waves).astype(np.float64) * expert_bytes,
        np.zeros(found.waves),
    )
    for wave in range(found.waves):
        bytes_GG = np.zeros((problem.gpus, problem.gpus))
        bytes_GG[found.source_T[found.wave_T == wave], found.target_T[found.wave_T == wave]] = expert_bytes
        seconds_W[wave] = (problem.topology.resource_bytes(bytes_GG) / capacity_R).max(initial=0.0)
    received_G = np.bincount(found.target_T, minlength=problem.gpus)
    return Moves(
        previous,
        most,
        old.expert_LP.size,
        old.layer_ids,
        found,
        bytes_W,
        seconds_W,
        float(received_G.max() * expert_bytes),
    )


def transfers(topology: Topology, old: Placement, new: Placement) -> Transfers:
    """One transfer for each slot that differs. The sender holds the expert in `old`, in the same NVLink domain or else node where one does.

    Among equally near ones it is the one that has sent least so far, then the lowest.
    """
    row_T, slot_T = np.nonzero(old.expert_LP != new.expert_LP)
    expert_T, target_T = new.expert_LP[row_T, slot_T], new.gpu_P[slot_T]
    node_G, domain_G = topology.node_G, topology.domain_G
    sent_G = np.zeros(old.gpus, dtype=np.int64)
    source_T = np.empty(len(row_T), dtype=np.int64)
    for at, (row, expert, target) in enumerate(
        zip(row_T.tolist(), expert_T.tolist(), target_T.tolist(), strict=True)
    ):
        holders = old.gpu_P[old.expert_LP[row] == expert]
        far = np.where(
            domain_G[holders] == domain_G[target], 0, np.where(node_G[holders] == node_G[target], 1, 2)
        )
        source_T[at] = min(zip(far.tolist(), sent_G[holders].tolist(), holders.tolist(), strict=True))[2]
        sent_G[source_T[at]] += 1
    wave_T = waves(source_T, target_T, old.gpus)
    order = np.lexsort((slot_T, row_T, wave_T))
    return Transfers(
        wave_T[order], row_T[order], expert_T[order], source_T[order], slot_T[order], target_T[order]
    )


def waves(source_T: Ints, target_T: Ints, gpus: int) -> Ints:
    """wave_T in which no GPU sends twice or receives twice, as few as can be: the most transfers that one GPU sends, or receives.

    Edge after edge takes a wave that both ends have free; where there is none, the two waves of a path of alternating transfers change places.
    """
    most = int(
        max(
            np.bincount(source_T, minlength=gpus).max(initial=0),
            np.bincount(target_T, minlength=gpus).max(initial=0),
        )
    )
    free = [
        [(1 << most) - 1] * gpus,
        [(1 << most) - 1] * gpus,
    ]  # of senders, of receivers: a bit for each wave
    taken: tuple[dict[tuple[int, int], int], dict[tuple[int, int], int]] = ({}, {})  # (GPU, wave) -> transfer
    ends = (source_T.tolist(), target_T.tolist())
    wave_T = np.zeros(len(source_T), dtype=np.int64)

    def paint(transfer: int, wave: int) -> None:
        wave_T[transfer] = wave
        for side in (0, 1):
            taken[side][ends[side][transfer], wave] = transfer
            free[side][ends[side][transfer]] &= ~(1 << wave)

    def wash(transfer: int) -> None:
        for side in (0, 1):
            del taken[side][ends[side][transfer], int(wave_T[transfer])]
            free[side][ends[side][transfer]] |= 1 << int(wave_T[transfer])

    for transfer, (source, target) in enumerate(zip(*ends, strict=True)):
        both = free[0][source] & free[1][target]
        if not both:
            ours, theirs = _lowest(free[0][source]), _lowest(free[1][target])
            path, side, gpu, wave = [], 1, target, ours
            while (gpu, wave) in taken[side]:  # from the receiver; bipartite, so it never comes to the sender
                path.append(taken[side][gpu, wave])
                side = 1 - side
                gpu, wave = ends[side][path[-1]], theirs if wave == ours else ours
            swapped = [theirs if wave_T[edge] == ours else ours for edge in path]
            for edge in path:
                wash(edge)
            for edge, other in zip(path, swapped, strict=True):
                paint(edge, other)
            both = 1 << ours
        paint(transfer, _lowest(both))
    return wave_T


def replayed(old: Placement, found: Transfers) -> Placement:
    """`old` after the transfers."""
    expert_LP = old.expert_LP.copy()
    expert_LP[found.row_T, found.slot_T] = found.expert_T
    return replace(old, expert_LP=expert_LP)


def steps_to_pay(moves: Moves, saved_seconds: float | None) -> int | None:
    """After how many steps the moves have saved what they took; None where they save nothing."""
    if not saved_seconds or saved_seconds <= 0:
        return None
    return math.ceil(moves.seconds / saved_seconds)


def moves_to_dict(moves: Moves, saved_seconds: float | None) -> dict[str, Any]:
    """Figures and every transfer: [wave, layer, expert, sending GPU, receiving GPU, slot]."""
    found = moves.transfers
    layer_T = np.array(moves.layer_ids, dtype=np.int64)[found.row_T]
    columns = (found.wave_T, layer_T, found.expert_T, found.source_T, found.target_T, found.slot_T)
    return {
        "from": moves.previous,
        "allowed": moves.most,
        "moved_slots": len(found),
        "share": moves.share,
        "bytes": moves.total_bytes,
        "most_received_bytes": moves.most_received_bytes,
        "seconds": moves.seconds,
        "saved_seconds_a_step": saved_seconds,
        "steps_to_pay": steps_to_pay(moves, saved_seconds),
        "waves": [
            {"bytes": float(size), "seconds": float(seconds)}
            for size, seconds in zip(moves.bytes_W, moves.seconds_W, strict=True)
        ],
        "columns": ["wave", "layer", "expert", "source", "target", "slot"],
        "transfers": np.stack(columns, axis=1).tolist(),
    }


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
