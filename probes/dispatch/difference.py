"""How far the tokens that a run sends are from the load of its plan: by expert, and by GPU.

Shapes: R rows of a job, E experts, P slots, G GPUs (one rank each), S source ranks (1 where
all behave alike).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from probes.dispatch.job import DispatchJob, Side

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """Of the rows that are run, under the plan's placement."""

    layer_id: int
    expert: int  # whose share of its layer's assignments differs most
    sent_share: float
    planned_share: float
    sent_max_over_mean: float  # over GPUs, the busiest of each row summed
    planned_max_over_mean: float


def difference(job: DispatchJob, side: Side, planned_RE: Floats) -> Difference:
    """Between what all ranks of the job ask for, and these shares of the plan's load."""
    rows, ranks = range(len(job.layer_ids)), range(job.gpus)
    sent_RE = np.zeros_like(planned_RE)
    for row in rows:
        asked_TK = np.concatenate([job.experts_TK(row, source) for source in ranks])
        sent_RE[row] = np.bincount(asked_TK.ravel(), minlength=job.experts) / asked_TK.size
    row, expert = divmod(int(np.abs(sent_RE - planned_RE).argmax()), job.experts)
    return Difference(
        job.layer_ids[row],
        expert,
        float(sent_RE[row, expert]),
        float(planned_RE[row, expert]),
        _max_over_mean(sent_RE, side, job.gpus),
        _max_over_mean(planned_RE, side, job.gpus),
    )


def _max_over_mean(share_RE: Floats, side: Side, gpus: int) -> float:
    """With the load of an expert on its slots by the replica rule's shares, mean over sources."""
    load_RP = np.take_along_axis(share_RE, side.expert_LP, axis=1) * side.share_LSP.mean(axis=1)
    load_RG = load_RP.reshape(len(load_RP), gpus, -1).sum(axis=2)
    return float(load_RG.max(axis=1).sum() / load_RG.mean(axis=1).sum())
