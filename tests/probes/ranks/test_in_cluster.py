"""A task over the ranks of an emulated cluster: found what each found, and the one that stopped it named."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from planner.topology import Topology
from probes.emulation.flat import flat_cluster
from probes.emulation.namespaces import emulated, unavailable
from probes.ranks.party import RunFailed
from probes.ranks.run import run_over_ranks
from tests.probes.ranks import cluster_task

NO_CLUSTER = unavailable()
pytestmark = [
    pytest.mark.skipif(NO_CLUSTER is not None, reason=f"no emulated cluster here: {NO_CLUSTER}"),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]


def uneven() -> Topology:
    """Two ranks on one host and one on another."""
    flat = flat_cluster(2, 2, 50e6, 25e6)
    return replace(flat, nodes=(replace(flat.nodes[0], name="left"), flat.nodes[1].first(1)))


def run(word: str) -> tuple[int, list[str]]:
    def save(folder: Path) -> None:
        (folder / "word").write_text(word)

    with emulated(uneven()) as cluster:
        return run_over_ranks(cluster_task.task(word), "test", save, cluster_task.__name__, cluster)


def test_every_rank_works_in_its_place() -> None:
    """Under its host's name, with its number there, in one group with the others."""
    told = str(["hello"] * 3)
    assert run("hello") == (0, [f"left 0 {told}", f"left 1 {told}", f"host1 0 {told}"])


def test_a_rank_that_refuses_is_heard_in_its_own_words() -> None:
    """One line, no traceback."""
    with pytest.raises(RunFailed, match=r"^rank 2 failed in 'refuse': rank 2 does not like this$"):
        run("refuse")


def test_a_rank_that_is_killed_is_named() -> None:
    """With its phase, at once."""
    with pytest.raises(RunFailed, match=r"^rank 2: killed \(SIGKILL\) in 'die'"):
        run("die")
