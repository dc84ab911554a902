"""What the messages of one validation run must come to.

No torch here: the prediction must not share the ranks' counting.

Shapes: P slots, G GPUs (one rank each), S source ranks (all G of them), T tokens a rank, K = top_k.
"""

from dataclasses import dataclass

import numpy as np

from probes.dispatch import sent
from probes.dispatch.job import DispatchJob
from probes.dispatch.sent import Counts
from probes.dispatch.traffic_checks import TrafficLaw, share_SGE


@dataclass(frozen=True, eq=False)
class Prediction:
    """What one row under one side must send.

    Messages and bytes are by sender and receiver (diagonal: local copies), assignments by source, GPU and
    expert.
    """

    hops: tuple[Counts, ...]  # messages_GG of each hop of the dispatch; the combine's are their transposes
    dispatch_bytes_GG: Counts
    combine_bytes_GG: Counts
    received_SGE: Counts


def law_of(job: DispatchJob, side_name: str, row: int) -> TrafficLaw:
    """What the traffic of one row under one side is drawn from."""
    side = job.sides[side_name]
    return TrafficLaw(
        job.tokens_per_rank,
        job.width,
        job.chance_E(row),
        share_SGE(side.share_LSP[row], side.expert_LP[row], job.gpus, job.experts),
        len(job.sides) * len(job.layer_ids),
    )


def predict(job: DispatchJob, side_name: str, row: int) -> Prediction:
    expert_P = job.sides[side_name].expert_LP[row]
    slots_per_gpu = len(expert_P) // job.gpus
    slots_STK = np.stack([job.slots_TK(side_name, row, source) for source in range(job.gpus)])
    hops = sent.hops(slots_STK, slots_per_gpu, job.unit_G.astype(np.int64), job.transport)
    messages_GG: Counts = np.sum(hops, axis=0, dtype=np.int64)
    there, back = job.record_bytes
    return Prediction(
        hops,
        messages_GG * there,
        messages_GG.T * back,
        sent.assignments(slots_STK, expert_P, job.gpus, slots_per_gpu, job.experts),
    )
