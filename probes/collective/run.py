"""Measure what links really carry, by an all-to-all: with nccl-tests where it is installed, else with torch.distributed.

On one machine the ranks are started here; on several, the user starts the same command on all of them with torchrun or srun (`probes.ranks.start`).
nccl-tests across machines is the user's to start (it needs MPI); its output is imported like any other file.
"""

import datetime as dt
import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from planner.base import BadInput
from probes.base.command import run
from probes.base.facts import MeasureFacts
from probes.collective.job import MeasureJob, Sweep, measured, save
from probes.importers.nccl_tests import read
from probes.ranks.start import (
    Party,
    RunFailed,
    available_bytes,
    check_memory,
    check_torch,
    is_launched,
    launched_place,
    run_here,
    terminable,
)

if TYPE_CHECKING:  # torch is imported in the ranks
    from probes.ranks.wire import Wire

__all__ = [
    "RunFailed",
    "find_alltoall_perf",
    "measure",
    "measure_with_nccl_tests",
    "measure_with_torch",
    "party",
    "work_text",
]

PROGRAM = "alltoall_perf"
HELP_SECONDS = 20.0


def measure(
    sweep: Sweep,
    *,
    ranks: int | None = None,
    nccl_tests: Path | None = None,
    device: str = "auto",
    timeout_seconds: float = 600.0,
    domain_of_rank: tuple[int, ...] | None = None,
) -> tuple[int, tuple[MeasureFacts, ...]]:
    """The rank of this process (0 speaks) and what was measured: by alltoall_perf on this machine's GPUs where there is one, else by torch.

    `ranks` None: one for each GPU here. A folder `nccl_tests` that has no alltoall_perf is an error; without one, PATH is looked at.
    """
    with_torch = is_launched() or device == "cpu"
    if nccl_tests is not None and with_torch:
        why = "the CPU was asked for" if device == "cpu" else "this process is one of several ranks"
        raise BadInput(
            f"{nccl_tests}: alltoall_perf is not run here, since {why}; start it under mpirun on all machines and import its output"
        )
    program = None if with_torch else find_alltoall_perf(nccl_tests)
    if program is None:
        return measure_with_torch(
            sweep, ranks=ranks, device=device, timeout_seconds=timeout_seconds, domain_of_rank=domain_of_rank
        )
    return 0, measure_with_nccl_tests(program, sweep, ranks or _visible_gpus() or 8, timeout_seconds)


def find_alltoall_perf(folder: Path | None) -> Path | None:
    """The program in `folder` or its `build`, or on PATH where no folder is given. BadInput where the folder does not have it."""
    if folder is None:
        found = shutil.which(PROGRAM)
        return Path(found) if found else None
    for candidate in (folder / PROGRAM, folder / "build" / PROGRAM):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    raise BadInput(
        f"{folder}: has no program {PROGRAM}, nor has its 'build'; give the folder where nccl-tests was built"
    )


def measure_with_nccl_tests(
    program: Path, sweep: Sweep, gpus: int, timeout_seconds: float
) -> tuple[MeasureFacts, ...]:
    """What alltoall_perf measured over `gpus` GPUs of this machine. Rows that came before a failure or the time limit are kept, and the fault is told."""
    argv = [
        str(program),
        "-b",
        str(sweep.smallest_bytes),
        "-e",
        str(sweep.largest_bytes),
        "-f",
        str(sweep.factor),
        "-g",
        str(gpus),
    ]
    name = f"{PROGRAM} {' '.join(argv[1:])}"
    with tempfile.TemporaryDirectory(prefix="moeplan-measure-") as folder, terminable():
        written = Path(folder) / "result.json"
        with_json = "-J" in run([str(program), "-h"], HELP_SECONDS).stdout
        output = run([*argv, "-J", str(written)] if with_json else argv, timeout_seconds)
        content = written.read_bytes() if written.is_file() else b""
    fault = output.fault
    facts = _read(content, name) or _read(output.stdout.encode(), name)
    if not facts:
        said = _reason(output.stdout.encode(), name)
        raise BadInput(f"{name}: {fault}; {said}" if fault else f"{name}: {said}")
    warnings = (f"{fault}; the rows before that are used",) if fault else ()
    today = dt.datetime.now(dt.timezone.utc).date().isoformat()
    return tuple(replace(one, date=one.date or today, warnings=(*one.warnings, *warnings)) for one in facts)


def _read(content: bytes, name: str) -> tuple[MeasureFacts, ...]:
    try:
        return read(content, name) if content.strip() else ()
    except BadInput:
        return ()


def _reason(content: bytes, name: str) -> str:
    try:
        read(content, name)
    except BadInput as error:
        return str(error).removeprefix(f"{name}: ")
    return "it printed nothing"


def measure_with_torch(
    sweep: Sweep,
    *,
    ranks: int | None = None,
    device: str = "auto",
    timeout_seconds: float = 600.0,
    domain_of_rank: tuple[int, ...] | None = None,
) -> tuple[int, tuple[MeasureFacts, ...]]:
    """The rank of this process (0 speaks) and the facts of each scope: inside domains, along rails, over all. NCCL on GPUs, gloo on the CPU."""
    check_torch("measure")
    rank, world = launched_place("measure") if is_launched() else (0, ranks or _visible_gpus())
    if ranks is not None and world != ranks:
        raise BadInput(
            f"{ranks} ranks were asked for and {world} were started; start one process for each GPU"
        )
    if world < 2:
        raise BadInput(
            f"{world} GPUs are visible here; measure at least 2 GPUs, or say --ranks N --device cpu to measure between CPU processes"
        )
    job = MeasureJob(world, sweep, _device(device, world), timeout_seconds, domain_of_rank)
    today = dt.datetime.now(dt.timezone.utc).date().isoformat()
    if is_launched():
        from probes.ranks.launched import run_launched

        rank, texts = run_launched(party(job), work_text(job))
        return rank, measured(job, [json.loads(text) for text in texts], _source(job), today)
    if job.device == "cpu":
        check_memory(job.ranks, available_bytes(), "measure")
    with tempfile.TemporaryDirectory(prefix="moeplan-measure-") as name, terminable():
        save(job, Path(name) / "job.json")
        texts = run_here("probes.collective.worker", Path(name), job.ranks, timeout_seconds)
    return rank, measured(job, [json.loads(text) for text in texts], _source(job), today)


def party(job: MeasureJob) -> Party:
    return Party((0,) * job.ranks, job.device, job.timeout_seconds)


def work_text(job: MeasureJob) -> "Callable[[Wire], str]":
    """What a rank does; it gives JSON."""

    def work_of(wire: "Wire") -> str:
        from probes.collective.rank import work

        return work(job, wire)

    return work_of


def _source(job: MeasureJob) -> str:
    return (
        f"torch.distributed all-to-all over {'NCCL' if job.device == 'cuda' else 'gloo'}, {job.ranks} ranks"
    )


def _visible_gpus() -> int:
    if importlib.util.find_spec("torch") is None:
        return 0
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def _device(device: str, world: int) -> str:
    """GPUs where there is one for each rank of this machine, else the CPU. BadInput where GPUs were asked for and are not there."""
    if device not in ("auto", "cpu", "cuda"):
        raise BadInput(f"device {device!r} is none of auto, cpu, cuda")
    if device == "cpu":
        return "cpu"
    here = int(os.environ.get("LOCAL_WORLD_SIZE", world)) if is_launched() else world
    needed = 1 if is_launched() and device == "cuda" else here
    if _visible_gpus() >= needed:
        return "cuda"
    if device == "cuda":
        raise BadInput(
            f"{here} ranks on this machine need as many GPUs, torch sees {_visible_gpus()}; use --device cpu to measure between CPU processes"
        )
    return "cpu"
