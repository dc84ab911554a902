"""A Ray cluster as workers: what is refused without one, and, where ray is installed, the same bytes."""

import importlib.util
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from planner.base import BadInput
from planner.solvers import Workforce, find_method
from planner.solvers.blocks import solve_in_blocks
from planner.solvers.ray_cluster import joined
from planner.solvers.workforce import Deadline
from tests.planner.solvers.test_workers import greedy, skewed

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="ray is not installed: pip install 'ray[client]'"
)


@pytest.fixture
def cluster() -> Iterator[str]:
    """The address of a cluster of two CPUs on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ray = str(Path(sys.executable).with_name("ray"))
    small = ["--num-cpus=2", "--object-store-memory=100000000"]
    quiet = ["--include-dashboard=false", "--disable-usage-stats"]
    subprocess.run(
        [ray, "start", "--head", f"--port={port}", *small, *quiet],
        check=True,
        timeout=120,
        stdout=subprocess.DEVNULL,
    )
    yield f"127.0.0.1:{port}"
    subprocess.run([ray, "stop"], check=True, timeout=60, stdout=subprocess.DEVNULL)


def test_no_address_is_no_cluster() -> None:
    """And nothing is imported."""
    with joined(None) as cpus:
        assert cpus is None
    assert "ray" not in sys.modules


def test_absent_ray_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that says what to install."""
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(BadInput, match=r"ray is not installed; pip install 'ray\[client\]'$"),
        joined("127.0.0.1:6379"),
    ):
        pass


@needs_ray
@pytest.mark.parametrize("address", ["head", "head:", ":6379", "head:port", "127.0.0.1:99999"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    """With the forms that there are."""
    with pytest.raises(BadInput, match="HOST:PORT"), joined(address):
        pass


@needs_ray
def test_a_closed_port_is_refused_at_once() -> None:
    """Nobody waits for it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(BadInput, match="nothing answers there"), joined(address):
        pass


@needs_ray
def test_a_port_of_something_else_is_given_up() -> None:
    """It is open and never answers. In a process of its own: ray goes on trying in the background."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        join = f"with joined({address!r}, join_seconds=2.0): pass"
        code = f"from planner.solvers.ray_cluster import joined\n{join}"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
        )
    assert "no Ray cluster answered in 2 s" in done.stderr


@needs_ray
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_same_bytes(cluster: str) -> None:
    """Blocks over its processes, put together here."""
    problem = skewed(5)
    shares: list[float] = []
    solved = solve_in_blocks(
        problem,
        greedy,
        Workforce(2, cluster),
        Deadline(progress=lambda share, _: shares.append(share)),
        seconds=0.0,
    )
    assert solved.placement.expert_LP.tolist() == find_method("greedy")(problem).expert_LP.tolist()
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert np.isfinite(solved.bound_L).all()
