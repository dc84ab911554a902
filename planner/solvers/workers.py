"""Blocks of layers over processes of this machine, or over a Ray cluster. The answer is the same for any number of workers and any cut into blocks.

Ctrl-C stops the work: layers that are done keep their rows, the others get those of `greedy`. Where nothing is done yet it goes through to the caller.
Owns joblib.
"""

import os
import signal
import time
import warnings
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from planner.placement import Placement
from planner.problem import Problem, blocks_of, layers_of
from planner.solvers.kernels.arrays import Solved
from planner.solvers.ray_cluster import joined
from planner.solvers.registry import Progress, find_method

BLOCK_SECONDS = 2.0  # of work in one block, so that a bar moves and Ctrl-C finds layers that are done
WORTH_PROCESSES_SECONDS = 3.0  # a process takes half a second to start
BLOCKS_A_WORKER = 4  # at least, for the bar and so that no worker waits long for the last one


class SolveBlock(Protocol):
    """Solves a problem of a few layers; it travels to other processes, so it must be picklable."""

    def __call__(
        self, problem: Problem, /, *, budget_seconds: float | None, progress: Progress | None
    ) -> Solved: ...


@dataclass(frozen=True)
class Workforce:
    """Who works: `workers` processes (None: as many as pay), on this machine or at a Ray cluster's `ray` address."""

    workers: int | None = None
    ray: str | None = None


BY_SIZE = Workforce()


@dataclass(frozen=True)
class Deadline:
    """A wall-clock limit in seconds, and whom to tell how far the work is."""

    budget_seconds: float | None = None
    progress: Progress | None = None


def solve_in_blocks(
    problem: Problem, solve: SolveBlock, workforce: Workforce, deadline: Deadline, *, seconds: float
) -> Solved:
    """What `solve` answers for all layers. `seconds`: about how long one process would take; too little for several stays in this one."""
    done: dict[int, Solved] = {}
    stopped = ""
    with joined(workforce.ray) as cluster_cpus:
        workers = workforce.workers or cluster_cpus or (cpus() if seconds > WORTH_PROCESSES_SECONDS else 1)
        blocks = blocks_of(problem, _block_count(workers, seconds, deadline.budget_seconds))
        results = (
            _apart(problem, solve, blocks, workers, workforce, deadline)
            if workers > 1 or workforce.ray
            else _here(problem, solve, blocks, deadline)
        )
        began = time.monotonic()
        try:
            with closing(results):
                for number, solved in results:
                    done[number] = solved
                    if solved.stopped:
                        break
        except KeyboardInterrupt:
            if not done:
                raise
            stopped = "between blocks"
    if stopped or any(solved.stopped for solved in done.values()):
        stopped = f"stopped by Ctrl-C after {time.monotonic() - began:.0f} s: the best so far"
    return _put_together(problem, blocks, done, stopped)


def cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _block_count(workers: int, seconds: float, budget_seconds: float | None) -> int:
    """One a worker under a budget, which each of them then has in full."""
    if budget_seconds is not None:
        return workers
    return max(int(seconds / BLOCK_SECONDS), workers * BLOCKS_A_WORKER if workers > 1 else 1, 1)


def _here(
    problem: Problem, solve: SolveBlock, blocks: list[range], deadline: Deadline
) -> Generator[tuple[int, Solved], None, None]:
    for number, rows in enumerate(blocks):
        progress = deadline.progress and _part_of(deadline.progress, number, len(blocks))
        yield (
            number,
            solve(layers_of(problem, rows), budget_seconds=deadline.budget_seconds, progress=progress),
        )


def _part_of(progress: Progress, number: int, count: int) -> Progress:
    return lambda share, text: progress(
        (number + share) / count, text if count == 1 else f"block {number + 1} of {count}: {text}"
    )


def _apart(
    problem: Problem,
    solve: SolveBlock,
    blocks: list[range],
    workers: int,
    workforce: Workforce,
    deadline: Deadline,
) -> Generator[tuple[int, Solved], None, None]:
    """Blocks as they are finished, in any order."""
    from joblib import Parallel, delayed, parallel_config

    workers = min(workers, len(blocks))
    backend: dict[str, Any] = (
        {"backend": "ray"}
        if workforce.ray
        else {"backend": "loky", "inner_max_num_threads": 1, "initializer": _leave_ctrl_c_to_the_parent}
    )
    if deadline.progress:
        deadline.progress(0.0, f"{len(blocks)} blocks of layers over {workers} workers")
    with parallel_config(**backend, n_jobs=workers, max_nbytes=None), _no_process_left(workforce):
        tasks = (
            delayed(_numbered)(number, solve, layers_of(problem, rows), deadline.budget_seconds)
            for number, rows in enumerate(blocks)
        )
        # Ray's pool hands results back together: wave after wave
        waves = (result for wave in _waves(tasks, workers) for result in Parallel()(wave))
        with _ctrl_c_held_back():  # from processes that are still starting, too
            results = waves if workforce.ray else Parallel(return_as="generator_unordered")(tasks)
        with _closed_in_silence(results):
            for count, result in enumerate(results, start=1):
                yield result  # kept before it is told: Ctrl-C may come in between
                if deadline.progress:
                    deadline.progress(count / len(blocks), f"block {count} of {len(blocks)} done")


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """Processes started meanwhile never see it; this one does afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _closed_in_silence(results: Generator[Any, None, None]) -> Iterator[None]:
    """Whoever stops early gets advice from joblib on stderr; who pressed Ctrl-C needs none."""
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            results.close()


def _waves(tasks: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while wave := [task for _, task in zip(range(size), tasks, strict=False)]:
        yield wave


def _numbered(
    number: int, solve: SolveBlock, problem: Problem, budget_seconds: float | None
) -> tuple[int, Solved]:
    return number, solve(problem, budget_seconds=budget_seconds, progress=None)


def _leave_ctrl_c_to_the_parent() -> None:
    """A terminal sends it to every process of the group; the parent stops the workers itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _no_process_left(workforce: Workforce) -> Iterator[None]:
    try:
        yield
    finally:
        if not workforce.ray:
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)


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
