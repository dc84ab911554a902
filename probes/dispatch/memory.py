"""What a rank of a run will need of its GPU's memory, and a refusal before it is asked for. No torch.

Sums of the tensors that live at once in `probes.dispatch.batch`; that torch holds no more than the room added
for it was not seen on a GPU when this was written.

Shapes: S sources (1 where all behave alike), E experts, P slots, Z slots of a GPU, G GPUs.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.base import BadInput, human_bytes
from probes.dispatch.job import DispatchJob, Side

EXACT_BYTES = 4  # of an element while it is worked on: float32
DRAW_ROOM = 1.3  # a step's draw may give a GPU more than its expectation
PARTS = ("experts", "records")
TORCH_BYTES = 1e9  # its context, kernels and NCCL's buffers (assumed)


@dataclass(frozen=True)
class Needed:
    """Bytes of one rank by what they are for."""

    bytes_of: Mapping[str, float]

    @property
    def total_bytes(self) -> float:
        return sum(self.bytes_of.values())


def needed(job: DispatchJob, rank: int) -> Needed:
    """Of the fullest row: every side's experts and records are there at once.

    Virtual ranks share the GPU; of the experts that are timed, one rank's and side's are there at a time.
    """
    ranks = range(job.gpus) if job.virtual else (rank,)
    parts = {name: sum(found[name] for found in (_of(job, one) for one in ranks)) for name in PARTS}
    return Needed({**parts, "timed weights": _weight_bytes(job), "torch": TORCH_BYTES})


def _weight_bytes(job: DispatchJob) -> float:
    if job.expert is None:
        return 0.0
    shape = job.timed_expert
    slots = [side.expert_LP.shape[1] // job.gpus for side in job.sides.values()]
    weight_bytes = 1 if shape.weight_dtype == "fp8" else 2
    each = weight_bytes * shape.matrices * shape.width * shape.intermediate
    return float(each * (max(slots) if job.virtual else sum(slots)))


def _of(job: DispatchJob, rank: int) -> dict[str, float]:
    row_bytes = EXACT_BYTES * job.width
    own = job.tokens_per_rank * (row_bytes * 3 + job.record_bytes[0] * records_a_token(job))
    experts, arrivals = 0.0, 0.0
    for side in job.sides.values():
        slots = side.expert_LP.shape[1] // job.gpus
        experts += slots * row_bytes * job.width
        each = job.record_bytes[0] + job.record_bytes[1] + 3 * row_bytes
        arrivals += DRAW_ROOM * most_arrivals(job, side, rank) * each
    return dict(zip(PARTS, (experts, own + arrivals), strict=True))


def records_a_token(job: DispatchJob) -> int:
    return job.top_k if job.transport == "slot" else 1


def most_arrivals(job: DispatchJob, side: Side, rank: int) -> float:
    """Expected records that come to a rank, in the row with the most of them; at most all tokens of all."""
    slots = side.expert_LP.shape[1] // job.gpus
    most = float(job.gpus * job.tokens_per_rank)
    if job.transport == "allgather":
        return most
    mine = slice(rank * slots, (rank + 1) * slots)
    wanted_LE = job.shares_LE / job.shares_LE.sum(axis=1, keepdims=True)
    wanted_LZ = np.take_along_axis(wanted_LE, side.expert_LP[:, mine].astype(np.int64), axis=1)
    entries_L = (wanted_LZ * side.share_LSP[:, :, mine].mean(axis=1)).sum(axis=1) * most * job.top_k
    most *= min(job.top_k, slots) if job.transport == "slot" else 1
    return min(float(entries_L.max()), most)


def check_fits(wanted: Needed, free_bytes: float, rank: int) -> None:
    """BadInput with the rank, the bytes needed and the bytes free."""
    if wanted.total_bytes <= free_bytes:
        return
    parts = ", ".join(f"{name} {human_bytes(count)}" for name, count in wanted.bytes_of.items() if count)
    raise BadInput(
        f"rank {rank} needs about {human_bytes(wanted.total_bytes)} of its GPU's memory ({parts}), "
        f"{human_bytes(free_bytes)} are free: take a smaller --hidden or fewer --tokens"
    )
