"""What --mem-fraction-static must leave free: all-to-all buffers, activations and graphs.

SGLang 0.5.23 guesses it from the totals over all ranks (arg_groups/memory_hook.py:282-400), which leaves less
than nothing at 16 ranks of 4096 tokens. Here the same figures are taken for what one rank holds.
"""

from dataclasses import dataclass, replace
from math import floor

from planner.cost import ledger
from planner.engines.common import deepep
from planner.engines.common.sizes import AUTO, GATHER, LOW_LATENCY, NORMAL, Sizes
from planner.problem import Problem, Workload

MIB, GIB = 1 << 20, 1 << 30
TOKEN_BYTES = 1.5 * MIB  # activations of a token, SGLang's figure
LEAST_TOKENS = 2048
LEAST_FREE, LARGE_GPU = 10 * GIB, 60 * GIB  # SGLang's floor, and from which memory on it holds
GRAPH_RANKS = 8  # above it a graph's padding does not grow with the ranks where tokens go through DeepEP
LEAST_FRACTION = 0.1


@dataclass(frozen=True)
class Room:
    """The fraction of a GPU for weights and KV cache, and the bytes by which the weights are over it."""

    fraction: float
    missing_bytes: float

    @property
    def fits(self) -> bool:
        return self.fraction >= LEAST_FRACTION


def room(problem: Problem, sizes: Sizes, mode: str) -> Room:
    found = ledger(problem, "sglang")
    weights = sum(line.size_bytes for line in found.lines if "weights" in line.name or line.name == "replica")
    free = _activations(problem, sizes, mode) + _graphs(problem.gpus, sizes, mode)
    free = max(free, LEAST_FREE) if found.memory_bytes > LARGE_GPU else free
    free += sum(_buffer_bytes(problem, workload) for workload in _workloads(problem, sizes, mode))
    fraction = floor(100 * (found.memory_bytes - free) / found.memory_bytes) / 100
    return Room(fraction, max(0.0, weights - fraction * found.memory_bytes))


def _activations(problem: Problem, sizes: Sizes, mode: str) -> float:
    """Of the tokens of one rank; without an all-to-all its experts see those of all ranks.

    GPUs that share a request's attention also hold each other's tokens before and after it.
    """
    tokens, model = max(sizes.running, sizes.chunk), problem.model
    own = TOKEN_BYTES * max(tokens, LEAST_TOKENS) + GIB / 2 + min(problem.gpus, 16) / 8 * GIB
    own += 2 * 2.0 * (problem.workload.attention_tp - 1) * tokens * model.hidden
    if mode != GATHER:
        return own
    width = model.expert_matrices * model.expert_intermediate + model.dispatch_width
    return own + 2.0 * problem.gpus * tokens * model.top_k * width


def _graphs(gpus: int, sizes: Sizes, mode: str) -> float:
    ranks = gpus if mode == GATHER else min(gpus, GRAPH_RANKS)
    return 0.0 if mode == NORMAL else sizes.running * (2 + 3 * ranks) * MIB


def _workloads(problem: Problem, sizes: Sizes, mode: str) -> list[Workload]:
    """A step of each kind whose buffers the server allocates."""
    if mode == GATHER:
        tokens = max(sizes.running, sizes.chunk)
        return [replace(problem.workload, tokens_per_rank=tokens, transport="allgather")]
    steps = []
    if mode in (LOW_LATENCY, AUTO):
        steps.append(replace(problem.workload, tokens_per_rank=sizes.buffer, transport="slot"))
    if mode in (NORMAL, AUTO):
        transport = deepep.transport("prefill", problem.topology)
        tokens = max(sizes.running, sizes.chunk)
        steps.append(replace(problem.workload, tokens_per_rank=tokens, transport=transport))
    return steps


def _buffer_bytes(problem: Problem, workload: Workload) -> float:
    lines = ledger(replace(problem, workload=workload), "sglang").lines
    return next(line.size_bytes for line in lines if line.name == "all_to_all")
