"""A small cluster on one Linux machine: a network namespace a rank, a bridge, links shaped by `tc`.

    rank0  rank1     host0        every rank has one link to the bridge; htb holds what it sends
      |      |                    and what it gets to `inside` for ranks of its own host and to
      +------+------ bridge ------+------+                `between` for all others, each way
                                  |      |
                       host1    rank2  rank3

Works as root, and as an ordinary user where the kernel lets users make namespaces. All of it lives in the
namespaces of one helper process, which ends when this program does, however it ends; the kernel takes
namespaces, links and shaping away with the last process in them.
"""

import contextlib
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache

from planner.base import BadInput
from probes.emulation.cluster import SETUP_SECONDS, Emulation, end
from probes.emulation.links import Links

TOOLS = ("unshare", "nsenter", "mount", "ip", "tc")
MOST_HOSTS, MOST_RANKS_PER_HOST = 64, 16


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
    links = Links(hosts, ranks_per_host, inside_bytes_per_s, between_bytes_per_s)
    _check(links)
    as_root = os.geteuid() == 0
    helper = _start_helper(as_root=as_root)
    try:
        _wait_until_ready(helper)
        user = [] if as_root else ["--user", "--preserve-credentials"]
        enter = ("nsenter", "--target", str(helper.pid), *user, "--net", "--mount")
        _set_up(links, enter)
        yield Emulation(links, enter)
    finally:
        end(helper)
        for pipe in (helper.stdin, helper.stdout, helper.stderr):
            if pipe is not None:
                pipe.close()


def _check(links: Links) -> None:
    if not (1 <= links.hosts <= MOST_HOSTS and 1 <= links.ranks_per_host <= MOST_RANKS_PER_HOST):
        asked = f"cannot emulate {links.hosts} hosts of {links.ranks_per_host} ranks"
        raise BadInput(f"{asked}; choose 1 to {MOST_HOSTS} hosts of 1 to {MOST_RANKS_PER_HOST}")
    inside, between = links.inside_bytes_per_s, links.between_bytes_per_s
    if not (1e5 <= inside <= 1e11 and 1e5 <= between <= 1e11):
        asked = f"cannot shape links to {inside:g} and {between:g} bytes/s"
        raise BadInput(f"{asked}; choose 100 kB/s to 100 GB/s")


def _start_helper(*, as_root: bool) -> "subprocess.Popen[bytes]":
    """The process that holds the namespaces; it says 'ready', and ends with its standard input."""
    as_user = [] if as_root else ["--user", "--map-root-user"]
    private = "mount -t tmpfs tmpfs /run && mkdir /run/netns && echo ready && exec cat"
    try:
        return subprocess.Popen(
            ["unshare", *as_user, "--net", "--mount", "sh", "-c", private],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise BadInput(f"cannot emulate a cluster: 'unshare' cannot be started ({error.strerror})") from error


def _wait_until_ready(helper: "subprocess.Popen[bytes]") -> None:
    assert helper.stdout is not None
    assert helper.stderr is not None
    answers, _, _ = select.select([helper.stdout], [], [], SETUP_SECONDS)
    if answers and helper.stdout.readline() == b"ready\n":
        return
    end(helper)
    said = helper.stderr.read().decode(errors="replace").strip().splitlines()
    why = f"the system allows no network namespaces ({said[-1] if said else 'no reason given'})"
    raise BadInput(f"cannot emulate a cluster: {why}; try as root")


def _set_up(links: Links, enter: tuple[str, ...]) -> None:
    argv = [*enter, "sh", "-c", "\n".join(["set -e", *links.commands()])]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=SETUP_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        late = f"'ip' and 'tc' did not end within {SETUP_SECONDS:g} s"
        raise BadInput(f"cannot emulate a cluster: {late}") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        why = said[-1] if said else f"exit code {done.returncode}"
        raise BadInput(f"cannot emulate a cluster: setting up links failed ({why})")
