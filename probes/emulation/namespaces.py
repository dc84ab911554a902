"""A small cluster on one Linux machine: a network namespace a rank, and links shaped by `tc`.

    rank0  rank1     host0        every rank has one link of its own; what it sends and what it is handed is
      |      |                    held to the rates of its NVLink and NIC. Links that several ranks share (a
      +--+---+                    NIC of two GPUs, a leaf's uplink) are pipes in between, each with its rate.
         |  pipes, by route
      +--+---+
      |      |
    rank2  rank3     host1

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

from planner.base import BadInput, human_bandwidth
from planner.topology import Topology
from probes.emulation.cluster import SETUP_SECONDS, Emulation, end
from probes.emulation.flat import flat_cluster
from probes.emulation.links import setup_script
from probes.emulation.scale import as_shaped

TOOLS = ("unshare", "nsenter", "mount", "ip", "tc")
MOST_RANKS, LONGEST_HOST_NAME = 64, 64
SLOWEST_BYTES_PER_S, FASTEST_BYTES_PER_S = 1e5, 1e11  # what `tc` holds well to


@lru_cache(maxsize=1)
def unavailable() -> str | None:
    """Why this machine cannot emulate a cluster; None where it can."""
    if sys.platform != "linux":
        return "network namespaces are a feature of Linux"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"'{missing[0]}' is not installed (it comes with util-linux or iproute2)"
    try:
        with emulated(flat_cluster(1, 2, 1e8, 1e8)):
            return None
    except BadInput as error:
        return str(error)


@contextlib.contextmanager
def emulated(topology: Topology, scale: float = 1.0) -> Iterator[Emulation]:
    """The cluster with links of 1/`scale` of the topology's rates, for as long as the block lasts.

    BadInput where the machine does not let us make it.
    """
    shaped = as_shaped(topology, scale)
    _check(shaped, scale)
    as_root = os.geteuid() == 0
    helper = _start_helper(as_root=as_root)
    try:
        _wait_until_ready(helper)
        user = [] if as_root else ["--user", "--preserve-credentials"]
        enter = ("nsenter", "--target", str(helper.pid), *user, "--net", "--mount")
        _set_up(setup_script(shaped), enter)
        yield Emulation(shaped, enter, scale)
    finally:
        end(helper)
        for pipe in (helper.stdin, helper.stdout, helper.stderr):
            if pipe is not None:
                pipe.close()


def _check(shaped: Topology, scale: float) -> None:
    asked = f"cannot emulate {shaped.name}"
    if shaped.gpu_count > MOST_RANKS:
        raise BadInput(f"{asked}: it has {shaped.gpu_count} GPUs; choose at most {MOST_RANKS}")
    long = next((node.name for node in shaped.nodes if len(node.name.encode()) > LONGEST_HOST_NAME), None)
    if long is not None:
        raise BadInput(f"{asked}: the name '{long}' is too long for a host; take {LONGEST_HOST_NAME} bytes")
    for resource in shaped.resources:
        rate = resource.rate.bytes_per_s
        if not SLOWEST_BYTES_PER_S <= rate <= FASTEST_BYTES_PER_S:
            held = f"{resource.name} would be held to {human_bandwidth(rate)} (1/{scale:g} of its rate)"
            raise BadInput(f"{asked}: {held}; what can be shaped is 100 kB/s to 100 GB/s")


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


def _set_up(script: str, enter: tuple[str, ...]) -> None:
    try:
        done = subprocess.run(
            [*enter, "sh"], input=script, capture_output=True, text=True, timeout=SETUP_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        late = f"'ip' and 'tc' did not end within {SETUP_SECONDS:g} s"
        raise BadInput(f"cannot emulate a cluster: {late}") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        why = said[-1] if said else f"exit code {done.returncode}"
        raise BadInput(f"cannot emulate a cluster: setting up links failed ({why})")
