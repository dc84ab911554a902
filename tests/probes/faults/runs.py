"""Runs that are started to fail, and what is left of them.

Every process of a run carries a mark of its own in its environment. Nothing without it is ever signalled.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.places import ROOT
from tests.probes.faults.drive import BEGUN
from tests.probes.faults.task import Fault

MARK = "MOEPLAN_FAULTS_MARK"
DRIVE = ["-m", "tests.probes.faults.drive", "run"]
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1", "--monitor-interval=0.2"]
PLENTY_SECONDS = 120.0  # for what has no limit of its own, on a machine that is busy


@dataclass
class Program:
    """One that the run consists of: how it ended, what it said and when."""

    process: "subprocess.Popen[str]"
    seconds: float = 0.0
    out: str = ""
    err: str = ""

    def finish(self, seconds: float) -> None:
        """Take what it says until it has ended; it is left as it is where that lasts too long."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.out, self.err = self.process.communicate(timeout=seconds)

    @property
    def begun(self) -> float | None:
        """When its limit began to count, by the clock that all processes share; None where it never did."""
        said = re.search(rf"^{BEGUN} ([\d.]+)$", self.err, re.MULTILINE)
        return float(said[1]) if said else None

    @property
    def code(self) -> int:
        return int(self.process.returncode)

    @property
    def lines(self) -> list[str]:
        """What moeplan said on stderr; torch's launcher says much more."""
        return [line for line in self.err.splitlines() if line.startswith("moeplan:")]


@dataclass
class Run:
    """`way`: local, emulated (one program that starts ranks), torchrun, launched (a program a rank)."""

    way: str
    fault: Fault
    ranks: int
    seconds: float
    folder: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    programs: list[Program] = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)

    def start(self, environment: dict[str, str] | None = None, before: tuple[str, ...] = ()) -> "Run":
        words = [*DRIVE, self.way, str(self.fault), str(self.ranks), str(self.seconds)]
        launcher = [*TORCHRUN, f"--nproc-per-node={self.ranks}"] if self.way == "torchrun" else []
        places = [{}] if self.way != "launched" else launched_places(self.ranks)
        for place in places:
            given = {
                MARK: self.mark,
                "PYTHONPATH": str(ROOT),
                "TMPDIR": str(self.folder),
                "OMP_NUM_THREADS": "1",
            }
            process = subprocess.Popen(
                [*before, sys.executable, *launcher, *words],
                env={**os.environ, **given, **place, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                start_new_session=True,
            )
            self.programs.append(Program(process))
        return self

    def finish(self) -> "Run":
        """Wait until all programs have ended."""
        for program in self.programs:
            program.finish(self.patience())
            program.seconds = time.monotonic() - self.begun
        return self

    def patience(self) -> float:
        return max(1.0, self.begun + self.seconds + PLENTY_SECONDS - time.monotonic())

    def marked(self) -> dict[int, str]:
        """What runs of it: command line by process id."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"{MARK}={self.mark}".encode() in (process / "environ").read_bytes():
                    command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found.update({int(process.name): command} if command else {})
        return found

    def wait_for_phase(self, rank: int, phase: str) -> None:
        """Of a run whose ranks we started."""
        wait_until(lambda: any(f" {phase}" in text for text in self._told(rank)), f"rank {rank} in '{phase}'")

    def _told(self, rank: int) -> list[str]:
        texts = []
        for file in self.folder.glob(f"*/rank-{rank}"):
            with contextlib.suppress(OSError):
                texts.append(file.read_text()[:200])
        return texts

    def left(self, seconds: float = 5.0) -> list[str]:
        """Processes and files that are still there after so long; a folder of torchrun is its own."""
        deadline = time.monotonic() + seconds
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return left

    def _left(self) -> list[str]:
        return [*self.marked().values(), *map(str, self._files())]

    def _files(self) -> Iterator[Path]:
        return (path for path in self.folder.iterdir() if not path.name.startswith("torchelastic"))

    def end(self) -> None:
        """Whatever a failed test has left."""
        for pid in self.marked():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for program in self.programs:
            with contextlib.suppress(subprocess.TimeoutExpired, ValueError):
                program.process.communicate(timeout=10)


def launched_places(ranks: int) -> list[dict[str, str]]:
    """What srun would tell each rank, through the variables of torch."""
    port = str(free_port())
    return [
        {
            "RANK": str(rank),
            "WORLD_SIZE": str(ranks),
            "LOCAL_RANK": str(rank),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "GLOO_SOCKET_IFNAME": "lo",
        }
        for rank in range(ranks)
    ]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(way: str, fault: Fault, folder: Path, *, ranks: int = 2, seconds: float = 60.0) -> Iterator[Run]:
    run = Run(way, fault, ranks, seconds, folder)
    try:
        yield run
    finally:
        run.end()


def wait_until(condition: Callable[[], bool], what: str, seconds: float = PLENTY_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"it did not come about: {what}"
        time.sleep(0.02)


def one_line(run: Run, number: int = 0) -> str:
    """What that program said: a line, and no traceback."""
    program = run.programs[number]
    assert program.code not in (0, -signal.SIGALRM), program.err
    assert len(program.lines) == 1, program.err
    assert "Traceback" not in program.err
    return program.lines[0]


def has_torch(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return "libtorch" in Path(f"/proc/{pid}/maps").read_text()
    return False


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
