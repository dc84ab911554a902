"""Ranks of a launched run on other hosts or GPUs than the plan's end it before anything is timed."""

import importlib.util
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from planner.topology import Seat, planned_seats
from probes.dispatch.seating import Seen, ask_seats, judge_seats
from probes.ranks.party import Party, RunFailed, Task
from tests.planner.engines.examples import machine

if TYPE_CHECKING:  # torch comes with it
    from probes.ranks.wire import Wire

HOSTS = ("node66", "node7")
NAMED = planned_seats(machine(2, 2), HOSTS)
UNNAMED = planned_seats(machine(2, 2))


def seen_on(*hosts: str, buses: tuple[int, ...] = ()) -> list[Seen]:
    """Ranks on these hosts, numbered there as they come."""
    found = []
    for rank, host in enumerate(hosts):
        seat = replace(NAMED[rank], host=host, local=hosts[:rank].count(host), node=None)
        found.append(Seen(seat, (0, buses[rank], 0) if buses else None))
    return found


@pytest.mark.parametrize("planned", [NAMED, UNNAMED])
def test_the_plans_order_passes(planned: tuple[Seat, ...]) -> None:
    assert judge_seats(planned, seen_on("node66", "node66", "node7", "node7")) == ()


def test_hosts_that_are_swapped_are_a_wrong_order_where_the_plan_names_them() -> None:
    """A launcher that sorts by name: node7 after node66, or before."""
    swapped = seen_on("node7", "node7", "node66", "node66")
    with pytest.raises(RunFailed, match=r"^wrong rank order, nothing was timed: rank 0 runs on host node7"):
        judge_seats(NAMED, swapped)
    assert judge_seats(UNNAMED, swapped) == ()


def test_ranks_dealt_out_over_hosts_are_a_wrong_order() -> None:
    """As Slurm's cyclic distribution does; no names are needed to see it."""
    with pytest.raises(RunFailed, match="rank 1 is number 0 on its host, the plan has it at 1"):
        judge_seats(UNNAMED, seen_on("a", "b", "a", "b"))


def test_hosts_of_one_nvlink_domain_are_nodes_all_the_same() -> None:
    """The domain of both spans two hosts: in order, and dealt out."""
    planned = planned_seats(machine(2, 2, nodes_per_domain=2))
    assert judge_seats(planned, seen_on("a", "a", "b", "b")) == ()
    with pytest.raises(RunFailed, match="wrong rank order"):
        judge_seats(planned, seen_on("a", "b", "a", "b"))


def test_one_host_for_all_nodes_is_a_rehearsal() -> None:
    assert judge_seats(NAMED, seen_on(*["laptop"] * 4)) == ("the plan's 2 nodes were all on this machine",)


def test_gpus_in_another_order_than_their_buses() -> None:
    """CUDA_VISIBLE_DEVICES=1,0 on the second host."""
    hosts = ("node66", "node66", "node7", "node7")
    assert judge_seats(NAMED, seen_on(*hosts, buses=(26, 60, 26, 60))) == ()
    with pytest.raises(
        RunFailed, match=r"GPU of rank 3 on host node7 \(0000:1a:00\) comes before that of rank 2"
    ):
        judge_seats(NAMED, seen_on(*hosts, buses=(26, 60, 60, 26)))


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_every_rank_hears_of_a_wrong_order() -> None:
    """All tell where they sit, and all end with the same line."""
    from probes.ranks.virtual import run_virtual

    hosts = ("node7", "node7", "node66", "node66")
    heard: list[str] = []

    def work(wire: "Wire") -> str:
        try:
            ask_seats(wire, NAMED, seen_on(*hosts)[wire.rank])
        except RunFailed as failure:
            heard.append(str(failure))
        return ""

    run_virtual(Task(Party((0, 0, 1, 1), "cpu", 60.0), work))
    assert len(heard) == 4
    assert len(set(heard)) == 1
    assert heard[0].startswith("wrong rank order, nothing was timed: rank 0 runs on host node7")
