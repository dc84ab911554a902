"""Measure what links really carry, by an all-to-all: with nccl-tests or with torch.distributed.

nccl-tests across machines is the user's to start (it needs MPI); its output is imported like any other file.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from planner.base import BadInput
from probes.base.facts import MeasureFacts
from probes.collective.job import MeasureJob, Sweep, load, measured, save, today
from probes.collective.nccl_tests import find_alltoall_perf, measure_with_nccl_tests
from probes.ranks.launch import is_launched, launched_world
from probes.ranks.party import Party, Task
from probes.ranks.resources import check_torch, choose_device, visible_gpus
from probes.ranks.run import run_over_ranks

if TYPE_CHECKING:  # torch is imported in the ranks
    from probes.ranks.wire import Wire

JOB_FILE = "job.json"


def measure(
    sweep: Sweep,
    *,
    ranks: int | None = None,
    nccl_tests: Path | None = None,
    device: str = "auto",
    timeout_seconds: float = 600.0,
) -> tuple[int, tuple[MeasureFacts, ...]]:
    """The rank of this process (0 speaks) and what was measured.

    By alltoall_perf on this machine's GPUs where there is one, else by torch. `ranks` None: one for each GPU
    here. A folder `nccl_tests` that has no alltoall_perf is an error; without one, PATH is looked at.
    """
    with_torch = is_launched() or device == "cpu"
    if nccl_tests is not None and with_torch:
        why = "the CPU was asked for" if device == "cpu" else "this process is one of several ranks"
        raise BadInput(
            f"{nccl_tests}: alltoall_perf is not run here, since {why}; "
            "start it under mpirun on all machines and import its output"
        )
    program = None if with_torch else find_alltoall_perf(nccl_tests)
    if program is None:
        return measure_with_torch(sweep, ranks=ranks, device=device, timeout_seconds=timeout_seconds)
    return 0, measure_with_nccl_tests(program, sweep, ranks or visible_gpus() or 8, timeout_seconds)


def measure_with_torch(
    sweep: Sweep, *, ranks: int | None = None, device: str = "auto", timeout_seconds: float = 600.0
) -> tuple[int, tuple[MeasureFacts, ...]]:
    """The rank of this process (0 speaks) and the facts of each scope: inside domains, along rails, over all.

    NCCL on GPUs, gloo on the CPU.
    """
    check_torch("measure")
    world = launched_world("measure") if is_launched() else ranks or visible_gpus()
    if ranks is not None and world != ranks:
        started = f"{ranks} ranks were asked for and {world} were started"
        raise BadInput(f"{started}; start one process for each GPU")
    if world < 2:
        raise BadInput(
            f"{world} GPUs are visible here; measure at least 2 GPUs, "
            "or say --ranks N --device cpu to measure between CPU processes"
        )
    if device not in ("auto", "cpu", "cuda"):
        raise BadInput(f"device {device!r} is none of auto, cpu, cuda")
    chosen = choose_device(device, world, "measure between CPU processes")
    job, day = MeasureJob(world, sweep, chosen, timeout_seconds), today()
    rank, texts = run_over_ranks(task(job), "measure", lambda folder: save(job, folder / JOB_FILE), __name__)
    return rank, measured(job, [json.loads(text) for text in texts], _source(job), day)


def task(job: MeasureJob) -> Task:
    """What each rank does; it gives JSON."""

    def work_of(wire: "Wire") -> str:
        from probes.collective.rank import work

        return work(job, wire)

    return Task(Party((0,) * job.ranks, job.device, job.timeout_seconds), work_of)


def task_in(folder: Path) -> Task:
    """The task of a rank that `probes.ranks.start` has started."""
    return task(load(folder / JOB_FILE))


def _source(job: MeasureJob) -> str:
    backend = "NCCL" if job.device == "cuda" else "gloo"
    return f"torch.distributed all-to-all over {backend}, {job.ranks} ranks"
