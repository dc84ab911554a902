"""Rearranging weights while a server serves: what moves, over which links, and how long nobody is served.

Shapes: L layers, P slots, G GPUs, S slots of a GPU.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.engines import REARRANGED_BYTES_PER_S
from planner.placement import Placement
from planner.plan import aligned, plan_moves
from planner.problem import Problem

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rearrangement:
    """From one placement to the next.

    `link_seconds`: the links' full rates, wave after wave. `stall_seconds`: what the server stands still
    where it waits for all weights.
    """

    moved_share: float  # of all slots
    total_bytes: float
    received_bytes: float  # by the GPU that receives most
    cross_node_share: float  # of the bytes
    link_seconds: float
    stall_seconds: float


def rearrangement(
    problem: Problem, old: Placement, new: Placement, stall_seconds: float | None = None
) -> Rearrangement:
    """What moves from `old` to `new`, wherever the slots of an expert lie on their GPU.

    The stall is the longer of the links' time and the rate at which engines were seen to rearrange, unless
    it was measured: `stall_seconds`, for all slots moved.
    """
    arrived = _in_place(old, new, problem.model.experts)
    moves = plan_moves(problem, old, arrived, "")
    sent = moves.transfers
    away_T = problem.node_G[sent.source_T] != problem.node_G[sent.target_T]
    if stall_seconds is None:
        stall = max(moves.seconds, moves.most_received_bytes / REARRANGED_BYTES_PER_S)
    else:
        stall = stall_seconds if len(sent) else 0.0
    return Rearrangement(
        moves.share,
        moves.total_bytes,
        moves.most_received_bytes,
        float(away_T.mean()) if len(sent) else 0.0,
        moves.seconds,
        stall,
    )


def mean_of(found: list[tuple[float, Rearrangement]]) -> Rearrangement:
    """The mean of rearrangements by weight."""
    weights = np.array([weight for weight, _ in found])
    fields = Rearrangement.__dataclass_fields__
    means = {name: np.average([getattr(one, name) for _, one in found], weights=weights) for name in fields}
    return Rearrangement(**{name: float(value) for name, value in means.items()})


def _in_place(old: Placement, new: Placement, experts: int) -> Placement:
    """`new` aligned to `old`. A second copy on one GPU, as balancers make them, needs no transfer where the
    GPU held the expert.
    """
    old_LP, new_LP = (_told_apart(one, experts) for one in (old, new))
    told = aligned(
        Placement(old_LP, old.layer_ids, old.gpus), Placement(new_LP, old.layer_ids, old.gpus)
    ).expert_LP
    arrived_LP = told % experts
    old_LGS, arrived_LGS = (rows.reshape(len(rows), old.gpus, -1) for rows in (old.expert_LP, arrived_LP))
    held_LGS = (arrived_LGS[:, :, :, None] == old_LGS[:, :, None, :]).any(axis=3)
    kept_LP = np.where(held_LGS.reshape(arrived_LP.shape), old.expert_LP, arrived_LP)
    return Placement(kept_LP, old.layer_ids, old.gpus)


def _told_apart(placement: Placement, experts: int) -> Ints:
    """Ids that are distinct on every GPU: the n-th copy of expert e is e + n · E."""
    expert_LGS = placement.expert_LP.reshape(len(placement.expert_LP), placement.gpus, -1)
    before_SS = np.tri(expert_LGS.shape[2], k=-1, dtype=bool)
    copy_LGS = ((expert_LGS[:, :, :, None] == expert_LGS[:, :, None, :]) & before_SS).sum(axis=3)
    return np.asarray((expert_LGS + copy_LGS * experts).reshape(placement.expert_LP.shape))
