"""The batch that fits: replicas and buffers take memory from the KV cache, so fewer requests decode."""

from dataclasses import dataclass, replace

from planner.cost import ledger
from planner.problem import Problem


@dataclass(frozen=True, eq=False)
class Batch:
    """A question with no more tokens a rank than memory has requests for."""

    problem: Problem
    requests: int  # at full context, that all GPUs hold at once
    fits: bool  # at least one token a rank, or in prefill one prompt a group


def fitting(problem: Problem, engine: str | None, buffer_bytes: float = 0.0) -> Batch:
    """The problem with the batch that fits beside its slots and `buffer_bytes` of each GPU.

    In decode every request is a token of its group's step. In prefill the chunk stays as it is.
    """
    workload, found = problem.workload, ledger(problem, engine)
    group = max(int((found.kv_left_bytes - buffer_bytes) // found.request_bytes), 0)
    requests = group * (problem.gpus // workload.attention_tp)
    if workload.phase != "decode":
        return Batch(problem, requests, group >= 1)
    tokens = min(workload.tokens_per_rank, group // workload.attention_tp)
    served = replace(problem, workload=replace(workload, tokens_per_rank=max(tokens, 1)))
    return Batch(served, requests, tokens >= 1)
