"""`fixed-by-source`: each rank always uses the same replica, as in vllm-ascend.

There each rank is an EP rank of its own (tensor parallel size 1). Source: vllm-ascend at commit 182b75e,
eplb_utils.generate_log2phy_map; read, not run.
"""

from collections.abc import Iterator

import numpy as np

from planner.placement import Placement
from planner.replica.situation import Shares, Situation, replica_index_P


def fixed_by_source(placement: Placement, situation: Situation) -> Iterator[Shares]:
    """Rank r uses replica r mod n of each expert, in slot order.

    Where the rank count is no multiple of n the first replicas serve a rank more.
    """
    rank_G1 = np.arange(placement.gpus)[:, None]
    for expert_P in placement.expert_LP:
        replicas_P = np.bincount(expert_P, minlength=situation.model.experts)[expert_P]
        yield (rank_G1 % replicas_P == replica_index_P(expert_P)).astype(np.float64)
