"""A running emulated cluster, and programs that run as its ranks."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from planner.topology import Topology
from probes.emulation.links import address
from probes.ranks.keep import kept

SETUP_SECONDS = 30.0
_PORT = 29400  # any: the namespaces have no other program
_AS_HOST = """\
import ctypes, os, socket, sys
socket.sethostname(sys.argv[1])
ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: it ends with whoever has started it
os.execvp(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True)
class Ended:
    """How a rank's program ended, and what it printed. `exit_code` None: it was killed at the time limit."""

    rank: int
    exit_code: int | None
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Emulation:
    """A running cluster. `topology` has the rates that its links are shaped to, and its hosts' names."""

    topology: Topology
    enter: tuple[str, ...]  # the words before a command that runs in the cluster
    scale: float = 1.0  # by which the rates were divided

    @property
    def ranks(self) -> int:
        return self.topology.gpu_count

    def command(self, rank: int, argv: Sequence[str]) -> list[str]:
        """`argv` as a program of that rank: in its network, under its host's name."""
        host = self.topology.nodes[int(self.topology.node_G[rank])].name
        in_network = [*self.enter, "ip", "netns", "exec", f"rank{rank}"]
        return [*in_network, "unshare", "--uts", sys.executable, "-c", _AS_HOST, host, *argv]

    def environment(self, rank: int) -> dict[str, str]:
        """What torchrun or srun would tell the rank."""
        node = int(self.topology.node_G[rank])
        return {
            "RANK": str(rank),
            "WORLD_SIZE": str(self.ranks),
            "LOCAL_RANK": str(self.topology.index_G[rank]),
            "LOCAL_WORLD_SIZE": str(len(self.topology.nodes[node].gpus)),
            "MASTER_ADDR": address(self.topology, 0),
            "MASTER_PORT": str(_PORT),
            "GLOO_SOCKET_IFNAME": "eth0",
            "OMP_NUM_THREADS": "1",
            "TORCHELASTIC_USE_AGENT_STORE": "False",  # where torchrun has started this program
        }

    def run(
        self, argv: Sequence[str], timeout_seconds: float, environment: Mapping[str, str] | None = None
    ) -> tuple[Ended, ...]:
        """`argv` once for each rank, all at the same time.

        Ends within the time limit; whatever is left then is killed.
        """
        deadline = time.monotonic() + timeout_seconds
        with kept("moeplan-emulate-") as here, contextlib.ExitStack() as stack:
            started = []
            for rank in range(self.ranks):
                started.append(self._start(rank, argv, here.folder, environment or {}))
                stack.callback(end, started[-1])
            codes = [_exit_code(process, deadline) for process in started]
            return tuple(
                Ended(rank, code, *(_written(here.folder, kind, rank) for kind in ("out", "err")))
                for rank, code in enumerate(codes)
            )

    def _start(
        self, rank: int, argv: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> "subprocess.Popen[bytes]":
        out, err = (folder / f"out-{rank}", folder / f"err-{rank}")
        with out.open("wb") as stdout, err.open("wb") as stderr:
            return subprocess.Popen(
                self.command(rank, argv),
                env={**os.environ, **environment, **self.environment(rank)},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )


def _exit_code(process: "subprocess.Popen[bytes]", deadline: float) -> int | None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, deadline - time.monotonic()))
    return process.poll()


def _written(folder: Path, kind: str, rank: int) -> str:
    return (folder / f"{kind}-{rank}").read_text(errors="replace")


def end(process: "subprocess.Popen[bytes]") -> None:
    """Its process group, while it is not waited for: after that the number may be another's."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(SETUP_SECONDS)
