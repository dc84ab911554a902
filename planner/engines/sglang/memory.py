"""What --mem-fraction-static must leave free: all-to-all buffers, activations and graphs.

SGLang 0.5.23 guesses it from the totals over all ranks (arg_groups/memory_hook.py:282-400), which leaves less
than nothing at 16 ranks of 4096 tokens. Here the same figures are taken for what one rank holds.
"""

from dataclasses import dataclass, replace
from math import floor

from planner.cost import ledger, sglang_free_bytes
from planner.engines.common import deepep
from planner.engines.common.sizes import AUTO, GATHER, LOW_LATENCY, NORMAL, Sizes
from planner.problem import Problem, Workload

LEAST_FRACTION = 0.1
DIGITS = 1000  # SGLang rounds its own guess to thousandths


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
    memory = found.memory_bytes
    free = sglang_free_bytes(
        problem.model,
        problem.gpus,
        memory,
        running=sizes.running,
        chunk=sizes.chunk,
        shared=problem.workload.attention_tp,
        gathers=mode == GATHER,
        graphs=mode != NORMAL,
    )
    free += sum(_buffer_bytes(problem, workload) for workload in _workloads(problem, sizes, mode))
    fraction = floor(DIGITS * (memory - free) / memory) / DIGITS
    return Room(fraction, max(0.0, found.weights_bytes - fraction * memory))


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
