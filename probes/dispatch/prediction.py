"""What the messages of one validation run must come to.

No torch here: the prediction must not share the ranks' counting.

Shapes: P slots, G GPUs (one rank each), S source ranks (all G of them), T tokens a rank, K = top_k.
"""

from dataclasses import dataclass

import numpy as np

from probes.dispatch import sent
from probes.dispatch.job import ENTRY_INTS, RECORD_INTS, VECTOR_BYTES_PER_ELEMENT, DispatchJob
from probes.dispatch.sent import Counts


@dataclass(frozen=True, eq=False)
class Prediction:
    """What one layer under one placement must send.

    Bytes are by sender and receiver (diagonal: local copies), assignments by source, GPU and expert.
    """

    dispatch_bytes_GG: Counts
    combine_bytes_GG: Counts
    received_SGE: Counts


def predict(job: DispatchJob, side_name: str, row: int) -> Prediction:
    expert_P = job.sides[side_name].expert_LP[row]
    slots_per_gpu = len(expert_P) // job.gpus
    slots_STK = np.stack([job.slots_TK(side_name, row, source) for source in range(job.gpus)])
    node_G = job.node_G.astype(np.int64)
    messages_GG = sent.messages(slots_STK, job.gpus, slots_per_gpu, node_G, job.transport)
    entries = 1 if job.transport == "slot" else job.top_k
    vector_bytes = VECTOR_BYTES_PER_ELEMENT * job.width
    return Prediction(
        messages_GG * (vector_bytes + 4 * (RECORD_INTS + ENTRY_INTS * entries)),
        messages_GG.T * vector_bytes,
        sent.assignments(slots_STK, expert_P, job.gpus, slots_per_gpu, job.experts),
    )
