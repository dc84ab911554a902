"""Work over processes, or over a Ray cluster: blocks of layers, or any jobs. Owns joblib.

Ctrl-C reaches only the parent.
"""

import errno
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, TypeVar

from planner.base import BadInput
from planner.problem import Problem, layers_of
from planner.solvers.kernels.arrays import Solved
from planner.solvers.registry import Progress
from planner.solvers.workforce import Deadline, SolveBlock, Workforce

LOOK_SECONDS = 0.5  # between two looks whether our parent lives
# What the system says where it has no process, descriptor, or place in /dev/shm for us.
_STARTS_NONE = {
    errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EROFS, errno.EACCES,
}  # fmt: skip
Job = TypeVar("Job")
Result = TypeVar("Result")


def solve_apart(
    problem: Problem, solve: SolveBlock, blocks: list[range], workforce: Workforce, deadline: Deadline
) -> Generator[tuple[int, Solved], None, None]:
    """Blocks as they are finished, in any order."""
    workers = min(workforce.workers or 1, len(blocks))
    if deadline.progress:
        deadline.progress(0.0, f"{len(blocks)} blocks of layers over {workers} workers")
    block = partial(_solved, solve, deadline.budget_seconds)
    jobs = (layers_of(problem, rows) for rows in blocks)
    with closing(work_apart(block, jobs, Workforce(workers, workforce.ray), deadline.progress)) as results:
        for count, result in enumerate(results, start=1):
            yield result  # kept before it is told: Ctrl-C may come in between
            if deadline.progress:
                deadline.progress(count / len(blocks), f"block {count} of {len(blocks)} done")


def work_apart(
    work: Callable[[Job], Result], jobs: Iterable[Job], workforce: Workforce, tell: Progress | None = None
) -> Generator[tuple[int, Result], None, None]:
    """What `work` makes of each job, beside the job's number, as they are finished, in any order.

    Both travel to other processes: they must be picklable. Where the system starts none, all is done in this
    one, and `tell` hears why; BadInput where one of them is killed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that there are no semaphores, which is told below
        from joblib.externals.loky.process_executor import BrokenProcessPool

    every, done = list(jobs), set()
    try:
        for number, result in _over_processes(work, every, workforce):
            done.add(number)
            yield number, result
    except BrokenProcessPool as fault:
        raise BadInput(
            f"one of {workforce.workers} worker processes was killed, for want of memory most likely; "
            "take fewer --workers"
        ) from fault
    except OSError as fault:
        if workforce.ray or fault.errno not in _STARTS_NONE:
            raise
        if tell:
            tell(0.0, f"in this process, for no other can be started ({fault.strerror})")
        for number, job in enumerate(every):
            if number not in done:
                yield number, work(job)


def _over_processes(
    work: Callable[[Job], Result], jobs: Sequence[Job], workforce: Workforce
) -> Generator[tuple[int, Result], None, None]:
    workers = workforce.workers or 1
    from joblib import Parallel, delayed, parallel_config
    from joblib._multiprocessing_helpers import mp

    if mp is None and not workforce.ray:
        raise OSError(errno.ENOSPC, "no semaphores: /dev/shm is full, or cannot be written")

    with parallel_config(**_backend(workforce), n_jobs=workers, max_nbytes=None), _no_process_left(workforce):
        tasks = (delayed(_numbered)(number, work, job) for number, job in enumerate(jobs))
        # Ray's pool hands results back together: wave after wave
        waves = (result for wave in _waves(tasks, workers) for result in Parallel()(wave))
        with _ctrl_c_held_back():  # from processes that are still starting, too
            results = waves if workforce.ray else Parallel(return_as="generator_unordered")(tasks)
        with _closed_in_silence(results):
            for result in results:  # noqa: UP028 - `yield from` closes joblib's generator before the silence
                yield result


def _backend(workforce: Workforce) -> dict[str, Any]:
    if workforce.ray:
        return {"backend": "ray"}
    start = {"initializer": _begin, "initargs": (os.getpid(),)}
    return {"backend": "loky", "inner_max_num_threads": 1, **start}


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


def _numbered(number: int, work: Callable[[Job], Result], job: Job) -> tuple[int, Result]:
    return number, work(job)


def _solved(solve: SolveBlock, budget_seconds: float | None, problem: Problem) -> Solved:
    return solve(problem, budget_seconds=budget_seconds, progress=None)


def _begin(parent: int) -> None:
    """A terminal sends Ctrl-C to every process of the group; the parent stops the workers itself. Where it
    was killed they stop by themselves.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def _no_process_left(workforce: Workforce) -> Iterator[None]:
    try:
        yield
    finally:
        if not workforce.ray:
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)
