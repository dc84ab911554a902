"""Blocks of layers, one after the other or over processes; the answer is the same for any number and any cut.

Ctrl-C stops the work: layers that are done keep their rows, the others get those of `greedy`.
"""

import os
import time
from collections.abc import Generator
from contextlib import closing

import numpy as np

from planner.placement import Placement
from planner.problem import Problem, blocks_of, layers_of
from planner.solvers.kernels.arrays import Solved
from planner.solvers.ray_cluster import joined
from planner.solvers.registry import Progress, find_method
from planner.solvers.workers import solve_apart
from planner.solvers.workforce import Deadline, SolveBlock, Workforce

BLOCK_SECONDS = 2.0  # of work in one block, so that a bar moves and Ctrl-C finds layers that are done
WORTH_PROCESSES_SECONDS = 3.0  # a process takes half a second to start
BLOCKS_A_WORKER = 4  # at least, for the bar and so that no worker waits long for the last one


def solve_in_blocks(
    problem: Problem, solve: SolveBlock, workforce: Workforce, deadline: Deadline, *, seconds: float
) -> Solved:
    """What `solve` answers for all layers.

    `seconds`: about how long one process would take; too little for several stays in this one.
    """
    with joined(workforce.ray) as cluster_cpus:
        workers = workforce.workers or cluster_cpus or (cpus() if seconds > WORTH_PROCESSES_SECONDS else 1)
        blocks = blocks_of(problem, _block_count(workers, seconds, deadline.budget_seconds))
        if workers > 1 or workforce.ray:
            results = solve_apart(problem, solve, blocks, Workforce(workers, workforce.ray), deadline)
        else:
            results = _solve_here(problem, solve, blocks, deadline)
        done, stopped = _gathered(results)
    return _put_together(problem, blocks, done, stopped)


def _gathered(results: Generator[tuple[int, Solved], None, None]) -> tuple[dict[int, Solved], str]:
    """The blocks that are done, by number, and what is to be said where Ctrl-C stopped the work."""
    done: dict[int, Solved] = {}
    pressed, began = False, time.monotonic()
    try:
        with closing(results):
            for number, solved in results:
                done[number] = solved
                if solved.stopped:
                    break
    except KeyboardInterrupt:
        pressed = True
    if not (pressed or any(solved.stopped for solved in done.values())):
        return done, ""
    return done, f"stopped by Ctrl-C after {time.monotonic() - began:.0f} s: the best so far"


def cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _block_count(workers: int, seconds: float, budget_seconds: float | None) -> int:
    """One a worker under a budget, which each of them then has in full."""
    if budget_seconds is not None:
        return workers
    return max(int(seconds / BLOCK_SECONDS), workers * BLOCKS_A_WORKER if workers > 1 else 1, 1)


def _solve_here(
    problem: Problem, solve: SolveBlock, blocks: list[range], deadline: Deadline
) -> Generator[tuple[int, Solved], None, None]:
    for number, rows in enumerate(blocks):
        progress = deadline.progress and _part_of(deadline.progress, number, len(blocks))
        block = layers_of(problem, rows)
        yield number, solve(block, budget_seconds=deadline.budget_seconds, progress=progress)


def _part_of(progress: Progress, number: int, count: int) -> Progress:
    block = "" if count == 1 else f"block {number + 1} of {count}: "
    return lambda share, text: progress((number + share) / count, block + text)


def _put_together(problem: Problem, blocks: list[range], done: dict[int, Solved], stopped: str) -> Solved:
    """The rows of the blocks that are done, and `greedy`'s where they are not."""
    model = problem.model
    expert_LP = np.empty((len(model.placed_layer_ids), problem.slots), dtype=np.int64)
    bound_L = np.zeros(len(expert_LP))
    for number, rows in enumerate(blocks):
        span = slice(rows.start, rows.stop)
        if number in done:
            expert_LP[span], bound_L[span] = done[number].placement.expert_LP, done[number].bound_L
        else:
            expert_LP[span] = find_method("greedy")(layers_of(problem, rows)).expert_LP
    left = sum(len(rows) for number, rows in enumerate(blocks) if number not in done)
    if stopped and left:
        stopped += f"; {left} of {len(expert_LP)} layers were not reached and are greedy's"
    return Solved(Placement(expert_LP, model.placed_layer_ids, problem.gpus), bound_L, stopped)
