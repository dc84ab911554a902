"""`hashed`, `row-index`: the replica depends on the token's row in the batch alone.

Sources: vLLM 0.33.0, model_executor/layers/fused_moe/router/base_router.py; SGLang 0.5.23,
srt/eplb/expert_location_dispatch.py.
"""

from collections.abc import Callable, Iterator

import numpy as np

from planner.placement import Placement
from planner.replica.situation import (
    Experts,
    Ids,
    Shares,
    Situation,
    first_slots,
    replica_index_P,
    replicas_TK,
    slot_of_replica,
)

KNUTH_MULTIPLIER = np.uint64(2654435769)  # floor(2^32 / golden ratio)
LOW_32_BITS = np.uint64(0xFFFFFFFF)


def hashed(placement: Placement, situation: Situation) -> Iterator[Shares]:
    """vLLM: a multiplicative hash of the row in the rank's own batch, modulo n.

    Every rank's batch has the same rows, so all ranks skew alike: with one token a rank the first replica
    gets everything.
    """
    for expert_P in placement.expert_LP:
        yield _shares_1P(expert_P, situation.tokens_per_rank, _hash_T)


def row_index(placement: Placement, situation: Situation) -> Iterator[Shares]:
    """SGLang without an all-to-all: all ranks run the same rows and pick the row number modulo n.

    These are the rows of all ranks together. Draft layers have no map.
    """
    rows = situation.tokens_per_rank * placement.gpus
    for layer_id, expert_P in zip(placement.layer_ids, placement.expert_LP, strict=True):
        if layer_id < situation.model.layers:
            yield _shares_1P(expert_P, rows, np.arange)
        else:
            yield first_slots(expert_P)


def hashed_slots(experts_TK: Ids, expert_P: Experts, rank: int = 0, gpus: int = 1) -> Ids:
    """slots_TK that vLLM picks on any rank.

    >>> hashed_slots(np.array([[0], [0], [0]]), np.array([0, 1, 0, 2])).tolist()
    [[0], [2], [0]]
    """
    del rank, gpus
    replica_TK = _hash_T(len(experts_TK))[:, None] % replicas_TK(expert_P, experts_TK)
    return slot_of_replica(expert_P, experts_TK, replica_TK)


def row_index_slots(experts_TK: Ids, expert_P: Experts, rank: int = 0, gpus: int = 1) -> Ids:
    """slots_TK that every SGLang rank picks for the rows of `rank`.

    The ranks' batches follow each other and are equally long.
    """
    del gpus
    row_T1 = rank * len(experts_TK) + np.arange(len(experts_TK))[:, None]
    return slot_of_replica(expert_P, experts_TK, row_T1 % replicas_TK(expert_P, experts_TK))


def _hash_T(rows: int) -> Ids:
    return ((np.arange(rows, dtype=np.uint64) * KNUTH_MULTIPLIER) & LOW_32_BITS).astype(np.int64)


def _shares_1P(expert_P: Ids, rows: int, number_T: Callable[[int], Ids]) -> Shares:
    """Share of the rows that each slot serves, where any row may ask for any expert."""
    numbers_T = number_T(rows)
    replicas_P = np.bincount(expert_P)[expert_P]
    index_P = replica_index_P(expert_P)
    share_1P = np.empty((1, len(expert_P)))
    for replicas in np.unique(replicas_P).tolist():
        here = replicas_P == replicas
        share_n = np.bincount(numbers_T % replicas, minlength=replicas) / rows
        share_1P[0, here] = share_n[index_P[here]]
    return share_1P
