"""Run nccl-tests' alltoall_perf on this machine's GPUs, and keep what it printed before any fault."""

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from planner.base import BadInput
from probes.base.command import run
from probes.base.facts import MeasureFacts
from probes.collective.job import Sweep, today
from probes.importers.nccl_tests import read
from probes.ranks.stop import stoppable

PROGRAM = "alltoall_perf"
HELP_SECONDS = 20.0


def find_alltoall_perf(folder: Path | None) -> Path | None:
    """The program in `folder` or its `build`, or on PATH where no folder is given.

    BadInput where the folder does not have it.
    """
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
    """What alltoall_perf measured over `gpus` GPUs of this machine.

    Rows that came before a failure or the time limit are kept, and the fault is told.
    """
    options = f"-b {sweep.smallest_bytes} -e {sweep.largest_bytes} -f {sweep.factor} -g {gpus}"
    argv, name = [str(program), *options.split()], f"{PROGRAM} {options}"
    with tempfile.TemporaryDirectory(prefix="moeplan-measure-") as folder, stoppable():
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
    return tuple(replace(one, date=one.date or today(), warnings=one.warnings + warnings) for one in facts)


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
