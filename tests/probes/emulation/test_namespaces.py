"""A cluster of network namespaces: who is where, and that nothing is left.

Its links have the rates they were given.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from planner.base import BadInput
from planner.topology import Topology
from probes.emulation.flat import flat_cluster
from probes.emulation.namespaces import TOOLS, emulated, unavailable
from tests.places import ROOT

REASON = unavailable()
needs_namespaces = pytest.mark.skipif(REASON is not None, reason=f"no emulated cluster here: {REASON}")

WHO = (
    "import os, socket; print(socket.gethostname(), os.environ['RANK'], os.environ['WORLD_SIZE'], "
    "os.environ['LOCAL_RANK'])"
)

# rank 0 takes what the others send, one after the other, and prints the seconds of each
TRANSFER = """
import os, socket, sys, time
size, rank = int(sys.argv[1]), int(os.environ["RANK"])
if rank == 0:
    with socket.create_server(("", 5001)) as server:
        for _ in range(int(os.environ["WORLD_SIZE"]) - 1):
            peer, _ = server.accept()
            start, left = time.monotonic(), size
            while left:
                left -= len(peer.recv(1 << 20)) or exit("the sender ended early")
            print(peer.getpeername()[0], time.monotonic() - start)
            peer.sendall(b"x")
else:
    time.sleep(1.5 * (rank - 1))
    for _ in range(100):
        try:
            peer = socket.create_connection((os.environ["MASTER_ADDR"], 5001))
            break
        except OSError:
            time.sleep(0.05)
    peer.sendall(bytes(size))
    peer.recv(1)
"""


@needs_namespaces
def test_ranks_sit_on_their_hosts() -> None:
    """Two hosts of two ranks, each with its host's name and the place that a launcher would tell it."""
    with emulated(flat_cluster(2, 2, 100e6, 25e6)) as cluster:
        ended = cluster.run([sys.executable, "-c", WHO], 20)
    assert [one.stdout.split() for one in ended] == [
        ["host0", "0", "4", "0"],
        ["host0", "1", "4", "1"],
        ["host1", "2", "4", "0"],
        ["host1", "3", "4", "1"],
    ]
    assert [one.exit_code for one in ended] == [0, 0, 0, 0]


@needs_namespaces
@pytest.mark.alone
def test_links_have_the_rates_they_were_given() -> None:
    """8 MB from a rank of the same host at 40 MB/s, and from one of the other host at 10 MB/s."""
    size = 8_000_000
    with emulated(flat_cluster(2, 2, 40e6, 10e6)) as cluster:
        ended = cluster.run([sys.executable, "-c", TRANSFER, str(size)], 40)
    assert [one.exit_code for one in ended] == [0, 0, 0, 0], [one.stderr for one in ended]
    rates = {
        address: size / float(seconds)
        for address, seconds in (line.split() for line in ended[0].stdout.splitlines())
    }
    assert rates == {
        "10.77.0.2": pytest.approx(40e6, rel=0.1),
        "10.77.1.1": pytest.approx(10e6, rel=0.1),
        "10.77.1.2": pytest.approx(10e6, rel=0.1),
    }


@needs_namespaces
def test_a_program_that_hangs_is_killed_in_time() -> None:
    """It has no exit code; the others keep theirs, and what was printed is there."""
    program = (
        "import os, sys, time; print('begun', flush=True); time.sleep(60 if os.environ['RANK'] == '1' else "
        "0); sys.exit(3)"
    )
    start = time.monotonic()
    with emulated(flat_cluster(1, 2, 100e6, 100e6)) as cluster:
        ended = cluster.run([sys.executable, "-c", program], 2)
    assert time.monotonic() - start < 10
    assert [(one.exit_code, one.stdout) for one in ended] == [(3, "begun\n"), (None, "begun\n")]


def left_over() -> str:
    """Namespaces with a name, links of ours, and helpers, as this machine shows them."""
    names = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    links = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout
    helpers = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    ours = [line for line in helpers.splitlines() if "mkdir /run/netns" in line or line == "cat"]
    return (
        names
        + "".join(line for line in links.splitlines() if line.startswith(("port", "in", "out")))
        + "".join(ours)
    )


@needs_namespaces
def test_nothing_is_left_after_the_block() -> None:
    """Nor while it lasts does the machine itself have namespaces or links more."""
    before = left_over()
    with emulated(flat_cluster(2, 1, 100e6, 100e6)):
        assert (
            subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
            in before
        )
    assert left_over() == before


@needs_namespaces
def test_nothing_is_left_after_a_kill() -> None:
    """SIGKILL of the program that emulates: its helper ends by itself."""
    program = (
        "import time\n"
        "from probes.emulation.flat import flat_cluster\n"
        "from probes.emulation.namespaces import emulated\n"
        "with emulated(flat_cluster(1, 2, 1e8, 1e8)) as cluster:\n"
        "    print(cluster.enter[2], flush=True)\n"
        "    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    helper = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=10)
    deadline = time.monotonic() + 5
    while Path(f"/proc/{helper}").exists() and _state(helper) != "Z":
        assert time.monotonic() < deadline, "the helper lives on"
        time.sleep(0.05)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "Z"


@needs_namespaces
def test_an_ordinary_user_can_do_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a user namespace of its own, which is what we make unless we are root."""
    if subprocess.run(
        ["unshare", "--user", "--map-root-user", "--net", "--mount", "true"], capture_output=True, check=False
    ).returncode:
        pytest.skip("this system allows users no namespaces")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with emulated(flat_cluster(2, 1, 100e6, 100e6)) as cluster:
        assert "--user" in cluster.enter
        ended = cluster.run([sys.executable, "-c", WHO], 20)
    assert [one.stdout for one in ended] == ["host0 0 2 0\n", "host1 1 2 0\n"]


@pytest.mark.parametrize(
    ("topology", "scale", "says"),
    [
        (flat_cluster(9, 8, 1e8, 1e8), 1.0, "cannot emulate flat: it has 72 GPUs; choose at most 64"),
        (flat_cluster(2, 2, 1e8, 1e6), 20.0, r"nic0/out would be held to 50 kB/s \(1/20 of its rate\)"),
        (flat_cluster(2, 2, 1e12, 1e8), 1.0, "nvlink/out would be held to 1 TB/s"),
    ],
)
def test_what_cannot_be_emulated_is_refused(topology: Topology, scale: float, says: str) -> None:
    """Before anything is started."""
    with pytest.raises(BadInput, match=says), emulated(topology, scale):
        pass


def test_a_host_name_that_no_host_can_have_is_refused() -> None:
    """Linux takes 64 bytes; the line says which."""
    flat = flat_cluster(1, 2, 1e8, 1e8)
    long = replace(flat, nodes=(replace(flat.nodes[0], name="h" * 65),))
    with pytest.raises(BadInput, match=r"the name 'h{65}' is too long for a host"), emulated(long):
        pass


def test_where_namespaces_are_refused_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in many containers: the system's own words, in one line."""
    fake = tmp_path / "unshare"
    fake.write_text("#!/bin/sh\necho 'unshare: unshare failed: Operation not permitted' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with (
        pytest.raises(
            BadInput,
            match=r"allows no network namespaces \(unshare: unshare failed: Operation not permitted\); "
            r"try as root",
        ),
        emulated(flat_cluster(1, 2, 1e8, 1e8)),
    ):
        pass


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the five that are needed."""
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool == "tc" else f"/usr/sbin/{tool}")
    assert "tc" in TOOLS
    assert unavailable.__wrapped__() == "'tc' is not installed (it comes with util-linux or iproute2)"
