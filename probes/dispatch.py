"""Run a plan's own dispatch for real: start one process a GPU, watch them, collect what they saw, and leave nothing behind.

On one machine the ranks are started here, by torch's own launcher. On several, the user starts this same program on all of them with torchrun or srun;
each process then finds RANK and WORLD_SIZE in its environment and works as a rank (`probes.dispatch_launched`).
"""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType

import numpy as np

from planner.errors import BadInput
from probes.dispatch_job import CPU_HIDDEN, DispatchJob, save
from probes.dispatch_report import DispatchReport, Seen, judge
from probes.dispatch_status import FAILED, Place, dead, kill, laggards, read_places

RANK_BYTES = 250e6  # resident memory of one CPU rank: Python, torch and gloo (measured with torch 2.13)
POLL_SECONDS = 0.05
STOP_SECONDS = 5.0
LOSS_SECONDS = 3.0
STANDSTILL_SECONDS = 3.0  # a rank under SIGSTOP for so long is not waited for


class RunFailed(BadInput):
    """A run that could not finish; the message names the ranks that stopped it and their phase."""


def run(job: DispatchJob) -> DispatchReport:
    """Dispatch, compute and combine of the job's layers, by one process a GPU. Ends within the job's timeout, plus a few seconds to clean up."""
    if importlib.util.find_spec("torch") is None:
        raise BadInput("validate needs torch: pip install 'moeplan[hardware]'")
    if is_launched():
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")  # read at torch's import; a lost peer is told in one line, not in C++ frames
    job = with_device(job)
    if is_launched():
        from probes.dispatch_launched import run_launched

        return run_launched(job)
    if job.device == "cpu":
        check_memory(job.gpus, available_bytes())
    with tempfile.TemporaryDirectory(prefix="moeplan-validate-") as name, _terminable():
        directory = Path(name)
        save(job, directory / "job.npz")
        return judge(job, _run_here(job, directory), job.device, rank=0, notes=_notes(job))


def is_launched() -> bool:
    """Whether a launcher has started this process as one of several ranks."""
    return {"RANK", "WORLD_SIZE"} <= os.environ.keys()


def with_device(job: DispatchJob) -> DispatchJob:
    """The job with its device and width decided: GPUs where there is one for each rank of this machine, else the CPU.

    Where each process was started elsewhere and sees its own GPU alone (srun --gpus-per-task), only device "cuda" says that GPUs are meant.
    """
    import torch

    visible = torch.cuda.device_count() if torch.cuda.is_available() else 0
    ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", np.bincount(job.node_G).max())) if is_launched() else job.gpus
    needed = 1 if is_launched() and job.device == "cuda" else ranks_here
    if job.device == "cuda" and visible < needed:
        raise BadInput(f"{ranks_here} ranks on this machine need as many GPUs, torch sees {visible}; use --device cpu to check routing and volume only")
    device = "cpu" if job.device == "cpu" or visible < needed else "cuda"
    return replace(job, device=device, hidden=job.hidden or (job.dispatch_width if device == "cuda" else CPU_HIDDEN))


def check_memory(ranks: int, free_bytes: float) -> None:
    """BadInput where so many ranks would not fit into this machine's memory."""
    if ranks * RANK_BYTES > free_bytes:
        raise BadInput(
            f"{ranks} ranks need about {ranks * RANK_BYTES / 1e9:.1f} GB of this machine's memory, {free_bytes / 1e9:.1f} GB are free: "
            f"solve for at most {int(free_bytes // RANK_BYTES)} GPUs, or start validate on the cluster with torchrun, one process a GPU"
        )


def available_bytes() -> float:
    """Memory that can still be used, as Linux tells it; without limit where the system does not tell."""
    with contextlib.suppress(OSError, StopIteration):
        line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable:"))
        return int(line.split()[1]) * 1024.0
    return float("inf")


def _run_here(job: DispatchJob, directory: Path) -> list[Seen]:
    """Start the ranks on this machine and return what they saw. Whatever happens, none of them is left."""
    deadline = time.monotonic() + job.timeout_seconds
    with (directory / "launcher.log").open("wb") as log:
        launcher = subprocess.Popen(
            _command(job, directory), env=_environment(directory), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        _watch(job, launcher, directory, deadline)
    finally:
        _stop(launcher, directory, job.gpus)
    seen = []
    for rank in range(job.gpus):
        seen += [Seen(**entry) for entry in json.loads((directory / f"seen-{rank}.json").read_text())]
    return seen


def _command(job: DispatchJob, directory: Path) -> list[str]:
    """`--standalone` lets the launcher choose a free port itself, so no other program can take it in between."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1", "--max-restarts=0", "--monitor-interval=0.5"]
    return [*launcher, f"--nproc-per-node={job.gpus}", "-m", "probes.dispatch_worker", str(directory)]


def _environment(directory: Path) -> dict[str, str]:
    """One thread a rank, loopback only, the launcher's own files where they are removed, and this very package on the path, installed or not."""
    path = os.pathsep.join([str(Path(__file__).resolve().parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    interface = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
    return {**os.environ, **interface, "OMP_NUM_THREADS": "1", "TMPDIR": str(directory), "PYTHONPATH": path}


def _watch(job: DispatchJob, launcher: "subprocess.Popen[bytes]", directory: Path, deadline: float) -> None:
    """Return when every rank has ended well; raise as soon as one has not, or when the time is over."""
    moving = time.monotonic()
    while launcher.poll() is None:
        places = read_places(directory, job.gpus)
        if dead(places) or any(place.phase == FAILED for place in places):
            _raise_fault(directory, places)
        _raise_loss(directory, places)
        stopped = [place.text for place in places if place.stopped]
        moving = moving if stopped else time.monotonic()
        if time.monotonic() - moving > STANDSTILL_SECONDS:
            raise RunFailed(f"{'; '.join(stopped)}; the run was ended, the other ranks cannot go on without it")
        if time.monotonic() > deadline:
            raise RunFailed(f"{_late(places, job.gpus)}; the run was ended after {job.timeout_seconds:g} s (raise --timeout if this is only slow)")
        time.sleep(POLL_SECONDS)
    places = read_places(directory, job.gpus)
    if launcher.returncode != 0 or dead(places):
        _raise_fault(directory, places)


def _raise_fault(directory: Path, places: list[Place]) -> None:
    """A rank's own exception is ours and keeps its traceback; a rank that vanished is named."""
    for place in places:
        if place.phase == FAILED:
            raise RuntimeError(f"rank {place.rank} failed:\n{(directory / f'error-{place.rank}').read_text()}")
    gone = dead(places)
    if gone:
        raise RunFailed(f"{'; '.join(place.text for place in gone)} without a result; look for a kill or too little memory in that machine's log")
    lines = (directory / "launcher.log").read_text(errors="replace").strip().splitlines()
    raise RunFailed(f"torch's launcher ended before the ranks did: {lines[-1] if lines else 'it said nothing'}")


def _raise_loss(directory: Path, places: list[Place]) -> None:
    """Ranks that lost each other while all of them live: after a pause, in which a dying one would have been seen dead."""
    for place in places:
        account = directory / f"lost-{place.rank}"
        if account.exists() and time.time() - account.stat().st_mtime > LOSS_SECONDS:
            lines = account.read_text().strip().splitlines()
            others = "; ".join(other.text for other in laggards(places))
            raise RunFailed(f"rank {place.rank} lost the others in '{place.phase}' ({lines[0] if lines else 'no reason given'}): {others}")


def _late(places: list[Place], ranks: int) -> str:
    absent = sorted(set(range(ranks)) - {place.rank for place in places})
    if absent:
        return f"rank{'s' if len(absent) > 1 else ''} {', '.join(map(str, absent))} did not start"
    return "; ".join(place.text for place in laggards(places)) or "torch's launcher did not end"


def _stop(launcher: "subprocess.Popen[bytes]", directory: Path, ranks: int) -> None:
    """End the ranks first, each by its own process id (torch gives them sessions of their own), so that the launcher can still bury them; then the launcher."""
    kill(read_places(directory, ranks))
    launcher.terminate()  # it passes this on to ranks that have not told their process id yet
    with contextlib.suppress(subprocess.TimeoutExpired):
        launcher.wait(STOP_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(launcher.pid, signal.SIGKILL)
    launcher.wait(STOP_SECONDS)
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline and any(place.alive for place in read_places(directory, ranks)):
        kill(read_places(directory, ranks))  # one that was only being born at the first call
        time.sleep(POLL_SECONDS)


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """While ranks run, SIGTERM unwinds this process like Ctrl-C does, so that it cleans up behind itself."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _notes(job: DispatchJob) -> list[str]:
    nodes = len(set(job.node_G.tolist()))
    return [f"the plan's {nodes} nodes were all on this machine"] if nodes > 1 else []
