"""Jobs that know nothing of each other, one after the other or over processes; answers in the jobs' order."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import TypeVar

from planner.solvers.blocks import WORTH_PROCESSES_SECONDS, cpus
from planner.solvers.ray_cluster import joined
from planner.solvers.registry import Progress
from planner.solvers.workers import work_apart
from planner.solvers.workforce import Workforce

Job = TypeVar("Job")
Result = TypeVar("Result")


def worked_off(
    work: Callable[[Job], Result],
    jobs: Sequence[Job],
    workforce: Workforce,
    progress: Progress | None = None,
    *,
    seconds: float,
) -> list[Result]:
    """What `work` makes of each job: the same for any number of workers.

    Both must be picklable. `seconds`: about how long one process would take for all; too little for several
    stays in this one. Ctrl-C goes through to the caller.
    """
    with joined(workforce.ray) as cluster_cpus:
        workers = workforce.workers or cluster_cpus or (cpus() if seconds > WORTH_PROCESSES_SECONDS else 1)
        workers = min(workers, max(len(jobs), 1))
        apart = workers > 1 or workforce.ray
        results = (
            work_apart(work, jobs, Workforce(workers, workforce.ray), progress)
            if apart
            else _here(work, jobs)
        )
        found: dict[int, Result] = {}
        with closing(results):
            for number, result in results:
                found[number] = result
                if progress:
                    progress(len(found) / len(jobs), f"{len(found)} of {len(jobs)} done")
    return [found[number] for number in range(len(jobs))]


def _here(work: Callable[[Job], Result], jobs: Sequence[Job]) -> Generator[tuple[int, Result], None, None]:
    for number, job in enumerate(jobs):
        yield number, work(job)
