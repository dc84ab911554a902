"""One process a rank on this machine: start them, watch them, collect what they found, and leave nothing behind. No torch here.

A run is a folder with its job, a worker module (`python -m WORKER FOLDER`, which calls `probes.ranks.worker.serve`) and a number of ranks; torch's own
launcher starts them. On several machines the user starts the same command everywhere with torchrun or srun; each process then finds RANK and WORLD_SIZE in its
environment and works as a rank (`probes.ranks.launched`).
"""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from planner.base import BadInput
from probes.ranks.status import FAILED, Place, dead, kill, laggards, read_places

RANK_BYTES = 250e6  # resident memory of one CPU rank: Python, torch and gloo (measured with torch 2.13)
POLL_SECONDS = 0.05
STOP_SECONDS = 5.0
LOSS_SECONDS = 3.0
STANDSTILL_SECONDS = 3.0  # a rank under SIGSTOP for so long is not waited for


class RunFailed(BadInput):
    """A run that could not finish; the message names the ranks that stopped it and their phase."""


@dataclass(frozen=True)
class Party:
    """The ranks of one run: the node of each, what they run on (cpu, cuda), and how long they may take."""

    nodes: tuple[int, ...]
    device: str
    timeout_seconds: float

    @property
    def ranks(self) -> int:
        return len(self.nodes)


def check_torch(verb: str) -> None:
    """BadInput that says what to install where torch is absent. Before torch is imported under a launcher, its C++ frames are silenced."""
    if importlib.util.find_spec("torch") is None:
        raise BadInput(f"{verb} needs torch: pip install 'moeplan[hardware]'")
    if is_launched():
        os.environ.setdefault(
            "TORCH_CPP_LOG_LEVEL", "FATAL"
        )  # read at torch's import; a lost peer is told in one line


def is_launched() -> bool:
    """Whether a launcher has started this process as one of several ranks."""
    return {"RANK", "WORLD_SIZE"} <= os.environ.keys()


def launched_place(verb: str) -> tuple[int, int]:
    """Rank and world size from the environment. BadInput where they are no numbers or the meeting point is missing."""
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise BadInput(
            f"RANK is set but {missing[0]} is not; start {verb} with torchrun, or set it for every rank (unset RANK to run on this machine alone)"
        )
    try:
        rank, world, _ = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
    except ValueError as error:
        given = ", ".join(f"{name} is {os.environ[name]!r}" for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
        raise BadInput(f"{given}; all must be whole numbers") from error
    return rank, world


def check_memory(ranks: int, free_bytes: float, verb: str = "validate") -> None:
    """BadInput where so many CPU ranks would not fit into this machine's memory."""
    if ranks * RANK_BYTES > free_bytes:
        raise BadInput(
            f"{ranks} ranks need about {ranks * RANK_BYTES / 1e9:.1f} GB of this machine's memory, {free_bytes / 1e9:.1f} GB are free: "
            f"take at most {int(free_bytes // RANK_BYTES)} GPUs, or start {verb} on the cluster with torchrun, one process a GPU"
        )


def available_bytes() -> float:
    """Memory that can still be used, as Linux tells it; without limit where the system does not tell."""
    with contextlib.suppress(OSError, StopIteration):
        line = next(
            line
            for line in Path("/proc/meminfo").read_text().splitlines()
            if line.startswith("MemAvailable:")
        )
        return int(line.split()[1]) * 1024.0
    return float("inf")


def run_here(worker: str, directory: Path, ranks: int, timeout_seconds: float) -> list[str]:
    """Start the ranks on this machine and return what each found, as text. Whatever happens, none of them is left."""
    deadline = time.monotonic() + timeout_seconds
    with (directory / "launcher.log").open("wb") as log:
        launcher = subprocess.Popen(
            _command(worker, directory, ranks),
            env=_environment(directory),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _watch(launcher, directory, ranks, deadline, timeout_seconds)
    finally:
        _stop(launcher, directory, ranks)
    return [(directory / f"found-{rank}").read_text() for rank in range(ranks)]


def _command(worker: str, directory: Path, ranks: int) -> list[str]:
    """`--standalone` lets the launcher choose a free port itself, so no other program can take it in between."""
    launcher = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--local-addr=127.0.0.1",
        "--max-restarts=0",
        "--monitor-interval=0.5",
    ]
    return [*launcher, f"--nproc-per-node={ranks}", "-m", worker, str(directory)]


def _environment(directory: Path) -> dict[str, str]:
    """One thread a rank, loopback only, the launcher's own files where they are removed, and this very package on the path, installed or not."""
    path = os.pathsep.join(
        [str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    interface = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
    return {**os.environ, **interface, "OMP_NUM_THREADS": "1", "TMPDIR": str(directory), "PYTHONPATH": path}


def _watch(
    launcher: "subprocess.Popen[bytes]", directory: Path, ranks: int, deadline: float, timeout_seconds: float
) -> None:
    """Return when every rank has ended well; raise as soon as one has not, or when the time is over."""
    moving = time.monotonic()
    while launcher.poll() is None:
        places = read_places(directory, ranks)
        if dead(places) or any(place.phase == FAILED for place in places):
            _raise_fault(directory, places)
        _raise_loss(directory, places)
        stopped = [place.text for place in places if place.stopped]
        moving = moving if stopped else time.monotonic()
        if time.monotonic() - moving > STANDSTILL_SECONDS:
            raise RunFailed(
                f"{'; '.join(stopped)}; the run was ended, the other ranks cannot go on without it"
            )
        if time.monotonic() > deadline:
            raise RunFailed(
                f"{_late(places, ranks)}; the run was ended after {timeout_seconds:g} s (raise --timeout if this is only slow)"
            )
        time.sleep(POLL_SECONDS)
    places = read_places(directory, ranks)
    if launcher.returncode != 0 or dead(places):
        _raise_fault(directory, places)


def _raise_fault(directory: Path, places: list[Place]) -> None:
    """A rank's own exception is ours and keeps its traceback; a rank that vanished is named."""
    for place in places:
        if place.phase == FAILED:
            raise RuntimeError(
                f"rank {place.rank} failed:\n{(directory / f'error-{place.rank}').read_text()}"
            )
    gone = dead(places)
    if gone:
        raise RunFailed(
            f"{'; '.join(place.text for place in gone)} without a result; look for a kill or too little memory in that machine's log"
        )
    lines = (directory / "launcher.log").read_text(errors="replace").strip().splitlines()
    raise RunFailed(
        f"torch's launcher ended before the ranks did: {lines[-1] if lines else 'it said nothing'}"
    )


def _raise_loss(directory: Path, places: list[Place]) -> None:
    """Ranks that lost each other while all of them live: after a pause, in which a dying one would have been seen dead."""
    for place in places:
        account = directory / f"lost-{place.rank}"
        if account.exists() and time.time() - account.stat().st_mtime > LOSS_SECONDS:
            lines = account.read_text().strip().splitlines()
            others = "; ".join(other.text for other in laggards(places))
            raise RunFailed(
                f"rank {place.rank} lost the others in '{place.phase}' ({lines[0] if lines else 'no reason given'}): {others}"
            )


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
def terminable() -> Iterator[None]:
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
