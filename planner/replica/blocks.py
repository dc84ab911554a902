"""`round-robin`: TensorRT-LLM goes round the replicas of each expert, block by block of its flattened batch.

Source: TensorRT-LLM, cpp/tensorrt_llm/kernels/moeLoadBalance/moeLoadBalanceKernels.cu, moeComputeRouteKernel,
snapshots up to 2026-09; read, not run. Within block b of 1024 entries the c-th entry for an expert on rank r
goes to replica (c + b + r) mod n, in slot order.

Shapes: E experts (n: with n replicas), G GPUs, P slots, T tokens, K = top_k, X entries of a flattened batch.
"""

from collections.abc import Iterator

import numpy as np

from planner.placement import Placement
from planner.replica.situation import (
    Experts,
    Ids,
    Shares,
    Situation,
    replica_index_P,
    replicas_TK,
    slot_of_replica,
)

BLOCK_ENTRIES = 1024


def round_robin(placement: Placement, situation: Situation) -> Iterator[Shares]:
    """Expected shares for the workload's tokens.

    Each of them asks for an expert with the chance that its load says, whatever the others ask.
    """
    tokens, top_k = situation.tokens_per_rank, situation.model.top_k
    rank_G1 = np.arange(placement.gpus)[:, None]
    for layer, expert_P in enumerate(placement.expert_LP):
        chance_E = np.minimum(top_k * situation.share_E(layer), 1.0)
        replicas_E = np.bincount(expert_P, minlength=situation.model.experts)
        index_P = replica_index_P(expert_P)
        share_GP = np.ones((placement.gpus, placement.slots))
        for replicas in np.unique(replicas_E[replicas_E > 1]).tolist():
            experts = np.flatnonzero(replicas_E == replicas)
            share_En = expected_shares(chance_E[experts], replicas, tokens, top_k)
            here = np.flatnonzero(replicas_E[expert_P] == replicas)
            row_P, turn_GP = np.searchsorted(experts, expert_P[here]), (index_P[here] - rank_G1) % replicas
            share_GP[:, here] = share_En[row_P, turn_GP]
        yield share_GP


def expected_shares(chance_E: Shares, replicas: int, tokens: int, top_k: int) -> Shares:
    """share_En on rank 0: of each expert's assignments, what each of its `replicas` gets.

    Exact for tokens that choose independently. Which replica is next walks round n places, one step with
    each entry for the expert. The Fourier modes of that walk multiply, so a run of tokens is a geometric
    sum; a token that straddles two blocks counts in each with the part of its entries there. An expert
    without load has the shares of the first few entries that it would get.
    """
    chance_E1 = np.maximum(chance_E, 1e-12)[:, None]
    root_n = np.exp(2j * np.pi * np.arange(replicas) / replicas)
    taken_En = np.zeros((len(chance_E), replicas), dtype=np.complex128)
    for block, segments in enumerate(_blocks(tokens, top_k)):
        mode_En = np.broadcast_to(root_n**block, taken_En.shape)
        for part, count in segments:
            step_En = 1 + chance_E1 * part * (root_n - 1)
            with np.errstate(invalid="ignore", divide="ignore"):
                geometric_En = np.where(np.arange(replicas) == 0, count, (1 - step_En**count) / (1 - step_En))
            taken_En += mode_En * chance_E1 * part * geometric_En
            mode_En = mode_En * step_En**count
    share_En = np.fft.fft(taken_En, axis=1).real.clip(min=0)
    return np.asarray(share_En / share_En.sum(axis=1, keepdims=True))


def round_robin_slots(experts_TK: Ids, expert_P: Experts, rank: int = 0, gpus: int = 1) -> Ids:
    """slots_TK that TensorRT-LLM picks on `rank` for exactly these entries.

    >>> round_robin_slots(np.array([[0], [1], [0]]), np.array([0, 1, 0, 2]), rank=1).tolist()
    [[2], [1], [0]]
    """
    del gpus
    entry_X = experts_TK.ravel()
    block_X = np.arange(len(entry_X)) // BLOCK_ENTRIES
    expert_of_block_X = block_X * (len(expert_P) + int(entry_X.max(initial=0)) + 1) + entry_X
    turn_X = replica_index_P(expert_of_block_X) + block_X + rank
    replica_X = turn_X % replicas_TK(expert_P, entry_X)
    return slot_of_replica(expert_P, experts_TK, replica_X.reshape(experts_TK.shape))


def _blocks(tokens: int, top_k: int) -> Iterator[list[tuple[float, int]]]:
    """For each block its runs of tokens: (part of each one's entries that lie in the block, their number)."""
    for start in range(0, tokens * top_k, BLOCK_ENTRIES):
        end = min(start + BLOCK_ENTRIES, tokens * top_k)
        first_whole, last_whole = -(-start // top_k), end // top_k
        if first_whole > last_whole:  # the block lies within one token
            yield [((end - start) / top_k, 1)]
            continue
        begun, ended = (first_whole - start / top_k, 1), (end / top_k - last_whole, 1)
        runs = (begun, (1.0, last_whole - first_whole), ended)
        yield [(part, count) for part, count in runs if part > 0 and count > 0]
