"""A small cluster on one Linux machine: a network namespace for each rank, joined by a bridge, its links shaped by `tc`.

    rank0  rank1     host0        every rank has one link to the bridge; htb holds what it sends and what it gets
      |      |                    to `inside` for ranks of its own host and to `between` for all others, each way
      +------+------ bridge ------+------+
                                  |      |
                       host1    rank2  rank3

Works as root, and as an ordinary user where the kernel lets users make namespaces. All of it lives in the namespaces of one helper process, which ends
when this program does, however it ends; the kernel takes namespaces, links and shaping away with the last process in them.
"""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from planner.base import BadInput

TOOLS = ("unshare", "nsenter", "mount", "ip", "tc")
SETUP_SECONDS = 30.0
MOST_HOSTS, MOST_RANKS_PER_HOST = 64, 16
_NETWORK = "10.77"
_PORT = 29400  # any: the namespaces have no other program
_MTU = 9000  # with 1500, headers would take 4 % of the shaped rate
_PASSABLE_BYTES = 65_536  # the largest packet that the kernel hands over in one piece
_CONGESTION = "reno"  # in every kernel; bbr leaves a tenth of a link unused that is busy both ways
_AS_HOST = "import os, socket, sys; socket.sethostname(sys.argv[1]); os.execvp(sys.argv[2], sys.argv[2:])"


@dataclass(frozen=True)
class Ended:
    """How a rank's program ended: its exit code (None: it was killed at the time limit) and what it printed."""

    rank: int
    exit_code: int | None
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Emulation:
    """A running cluster: `hosts` x `ranks_per_host` ranks, host by host. Rates in bytes/s, each way, of each rank."""

    hosts: int
    ranks_per_host: int
    inside_bytes_per_s: float
    between_bytes_per_s: float
    enter: tuple[str, ...]  # the words before a command that runs in the cluster

    @property
    def ranks(self) -> int:
        return self.hosts * self.ranks_per_host

    def command(self, rank: int, argv: Sequence[str]) -> list[str]:
        """`argv` as a program of that rank: in its network, under its host's name."""
        host = f"host{rank // self.ranks_per_host}"
        return [
            *self.enter,
            "ip",
            "netns",
            "exec",
            f"rank{rank}",
            "unshare",
            "--uts",
            sys.executable,
            "-c",
            _AS_HOST,
            host,
            *argv,
        ]

    def environment(self, rank: int) -> dict[str, str]:
        """What torchrun or srun would tell the rank."""
        place = {
            "RANK": rank,
            "WORLD_SIZE": self.ranks,
            "LOCAL_RANK": rank % self.ranks_per_host,
            "LOCAL_WORLD_SIZE": self.ranks_per_host,
        }
        meeting = {
            "MASTER_ADDR": _address(0, self.ranks_per_host),
            "MASTER_PORT": str(_PORT),
            "GLOO_SOCKET_IFNAME": "eth0",
            "OMP_NUM_THREADS": "1",
        }
        return {**{name: str(value) for name, value in place.items()}, **meeting}

    def run(
        self, argv: Sequence[str], timeout_seconds: float, environment: Mapping[str, str] | None = None
    ) -> tuple[Ended, ...]:
        """`argv` once for each rank, all at the same time. Ends within the time limit; whatever is left then is killed."""
        deadline = time.monotonic() + timeout_seconds
        with tempfile.TemporaryDirectory(prefix="moeplan-emulate-") as name, contextlib.ExitStack() as stack:
            started = []
            for rank in range(self.ranks):
                out, err = (
                    stack.enter_context((Path(name) / f"{kind}-{rank}").open("w+b"))
                    for kind in ("out", "err")
                )
                process = subprocess.Popen(
                    self.command(rank, argv),
                    env={**os.environ, **(environment or {}), **self.environment(rank)},
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
                stack.callback(_end, process)
                started.append(process)
            codes: list[int | None] = []
            for process in started:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, deadline - time.monotonic()))
                codes.append(process.poll())
            texts = [
                [(Path(name) / f"{kind}-{rank}").read_text(errors="replace") for kind in ("out", "err")]
                for rank in range(self.ranks)
            ]
        return tuple(
            Ended(rank, code, *text) for rank, (code, text) in enumerate(zip(codes, texts, strict=True))
        )


@lru_cache(maxsize=1)
def unavailable() -> str | None:
    """Why this machine cannot emulate a cluster; None where it can."""
    if sys.platform != "linux":
        return "network namespaces are a feature of Linux"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"'{missing[0]}' is not installed (it comes with util-linux or iproute2)"
    try:
        with emulated(1, 1, 1e8, 1e8):
            return None
    except BadInput as error:
        return str(error)


@contextlib.contextmanager
def emulated(
    hosts: int, ranks_per_host: int, inside_bytes_per_s: float, between_bytes_per_s: float
) -> Iterator[Emulation]:
    """The cluster, for as long as the block lasts. BadInput where the machine does not let us make it."""
    if not (1 <= hosts <= MOST_HOSTS and 1 <= ranks_per_host <= MOST_RANKS_PER_HOST):
        raise BadInput(
            f"cannot emulate {hosts} hosts of {ranks_per_host} ranks; choose 1 to {MOST_HOSTS} hosts of 1 to {MOST_RANKS_PER_HOST}"
        )
    if not (1e5 <= inside_bytes_per_s <= 1e11 and 1e5 <= between_bytes_per_s <= 1e11):
        raise BadInput(
            f"cannot shape links to {inside_bytes_per_s:g} and {between_bytes_per_s:g} bytes/s; choose 100 kB/s to 100 GB/s"
        )
    as_user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    private = "mount -t tmpfs tmpfs /run && mkdir /run/netns && echo ready && exec cat"
    try:
        helper = subprocess.Popen(
            ["unshare", *as_user, "--net", "--mount", "sh", "-c", private],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise BadInput(f"cannot emulate a cluster: 'unshare' cannot be started ({error.strerror})") from error
    try:
        assert helper.stdout is not None
        assert helper.stderr is not None
        answers, _, _ = select.select([helper.stdout], [], [], SETUP_SECONDS)
        if not answers or helper.stdout.readline() != b"ready\n":
            _end(helper)
            said = helper.stderr.read().decode(errors="replace").strip().splitlines()
            raise BadInput(
                f"cannot emulate a cluster: the system allows no network namespaces ({said[-1] if said else 'no reason given'}); try as root"
            )
        user = ["--user", "--preserve-credentials"] if as_user else []
        enter = ("nsenter", "--target", str(helper.pid), *user, "--net", "--mount")
        cluster = Emulation(hosts, ranks_per_host, inside_bytes_per_s, between_bytes_per_s, enter)
        _set_up(cluster)
        yield cluster
    finally:
        _end(helper)
        for pipe in (helper.stdin, helper.stdout, helper.stderr):
            if pipe is not None:
                pipe.close()


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Its process group, while it is not waited for: after that the number may be another's."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(SETUP_SECONDS)


def _set_up(cluster: Emulation) -> None:
    script = "\n".join(["set -e", *_commands(cluster)])
    try:
        done = subprocess.run(
            [*cluster.enter, "sh", "-c", script],
            capture_output=True,
            text=True,
            timeout=SETUP_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BadInput(
            f"cannot emulate a cluster: 'ip' and 'tc' did not end within {SETUP_SECONDS:g} s"
        ) from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise BadInput(
            f"cannot emulate a cluster: setting up links failed ({said[-1] if said else f'exit code {done.returncode}'})"
        )


def _address(rank: int, ranks_per_host: int) -> str:
    return f"{_NETWORK}.{rank // ranks_per_host}.{rank % ranks_per_host + 1}"


def _commands(cluster: Emulation) -> list[str]:
    """The shell lines that make bridge, namespaces, links and shaping. Nothing in them comes from outside."""
    lines = ["ip link set lo up", f"ip link add fabric mtu {_MTU} type bridge", "ip link set fabric up"]
    for rank in range(cluster.ranks):
        name, port = f"rank{rank}", f"port{rank}"
        host = f"{_NETWORK}.{rank // cluster.ranks_per_host}.0/24"
        lines += [
            f"ip netns add {name}",
            f"ip link add {port} mtu {_MTU} type veth peer name eth0 mtu {_MTU} netns {name}",
            f"ip link set {port} master fabric up",
            f"ip -n {name} address add {_address(rank, cluster.ranks_per_host)}/16 dev eth0",
            f"ip -n {name} link set eth0 up",
            f"ip -n {name} link set lo up",
            f"ip -n {name} route replace {_NETWORK}.0.0/16 dev eth0 congctl {_CONGESTION}",
            *_shaping(f"tc -n {name}", "eth0", f"dst {host}", cluster),
            *_shaping("tc", port, f"src {host}", cluster),
        ]
    return lines


def _shaping(tc: str, device: str, own_host: str, cluster: Emulation) -> list[str]:
    """Two classes, that of the other hosts by default; a queue of packets each, since fq_codel is not in every kernel."""
    lines = [f"{tc} qdisc add dev {device} root handle 1: htb default 2"]
    for minor, rate in ((1, cluster.inside_bytes_per_s), (2, cluster.between_bytes_per_s)):
        burst = _PASSABLE_BYTES + int(
            rate / 1000
        )  # a millisecond's worth: the kernel's timer is no finer on some machines
        limits = f"rate {round(rate * 8)}bit burst {burst} cburst {burst} quantum {_PASSABLE_BYTES}"
        lines += [
            f"{tc} class add dev {device} parent 1: classid 1:{minor} htb {limits}",
            f"{tc} qdisc add dev {device} parent 1:{minor} pfifo limit 500",
        ]
    return [*lines, f"{tc} filter add dev {device} parent 1: protocol ip u32 match ip {own_host} flowid 1:1"]
