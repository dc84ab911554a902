"""Seats compared with the plan's: each kind of mismatch is named, and what cannot be compared is said."""

from dataclasses import replace
from pathlib import Path

import pytest

from planner.base import BadInput, write_json
from planner.topology import Seat, compare, planned_seats, recorded_seats
from tests.planner.engines.examples import machine

HOSTS = ("node66", "node7")
PLANNED = planned_seats(machine(2, 2), HOSTS)
SEEN = tuple(replace(seat, node=None, uuid=f"GPU-{seat.rank}") for seat in PLANNED)


def test_ranks_that_sit_as_planned_are_ok() -> None:
    """In whatever order they were gathered; a domain behind the host name makes no other host."""
    assert compare(PLANNED, SEEN[::-1]).ok
    assert compare(PLANNED, [replace(seat, host=f"{seat.host}.cluster.local") for seat in SEEN]).ok


def test_hosts_sorted_by_name_are_caught() -> None:
    """C22: a launcher that sorts hosts puts node66 before node7, where the plan has it the other way."""
    report = compare(planned_seats(machine(2, 2), ("node7", "node66")), SEEN)
    assert report.mismatches[0] == "rank 0 runs on host node66, the plan has it on node7"
    assert len(report.mismatches) == 4


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        (SEEN[:3], "rank 3 was not seen"),
        ((*SEEN, Seat(4, "node7", 2)), "rank 4 was seen, the plan has the ranks 0 to 3"),
        ((*SEEN, SEEN[0]), "5 seats carry 4 distinct ranks"),
        ((replace(SEEN[0], local=1), *SEEN[1:]), "rank 0 is number 1 on its host, the plan has it at 0"),
        ((SEEN[0], replace(SEEN[1], uuid="GPU-0"), *SEEN[2:]), "ranks 0 and 1 have the same GPU GPU-0"),
    ],
)
def test_each_mismatch_is_named(seen: tuple[Seat, ...], message: str) -> None:
    """One line for each, and it is not ok."""
    report = compare(PLANNED, seen)
    assert not report.ok
    assert any(message in line for line in report.mismatches)
    assert f"bad: {report.mismatches[0]}" in report.text()


def test_without_hosts_nodes_must_still_be_hosts() -> None:
    """Ranks of one node on one host, other nodes on others; which ones is said to be unchecked."""
    planned = planned_seats(machine(2, 2))
    assert compare(planned, SEEN).ok
    assert "which host each node is" in compare(planned, SEEN).unchecked[0]
    alternating = [replace(seat, host=HOSTS[seat.rank % 2]) for seat in SEEN]
    assert (
        "ranks 0 and 1 belong on one node, and run on hosts node66 and node7"
        in compare(planned, alternating).mismatches
    )
    together = [replace(seat, host="node66") for seat in SEEN]
    assert (
        "ranks 0 and 2 belong on different nodes, and both run on host node66"
        in compare(planned, together).mismatches
    )


def test_a_recorded_start_fixes_the_gpus(tmp_path: Path) -> None:
    """What one start printed is what the next must show."""
    path = write_json(tmp_path / "seats.json", compare(PLANNED, SEEN).to_dict())
    expected = recorded_seats(planned_seats(machine(2, 2)), path)
    assert compare(expected, SEEN).ok
    assert not compare(expected, SEEN).unchecked
    swapped = (replace(SEEN[0], uuid="GPU-1"), replace(SEEN[1], uuid="GPU-0"), *SEEN[2:])
    assert compare(expected, swapped).mismatches == (
        "rank 0 has GPU GPU-1, expected GPU-0",
        "rank 1 has GPU GPU-0, expected GPU-1",
    )


def test_a_record_of_another_plan_is_refused(tmp_path: Path) -> None:
    """Two ranks recorded, four planned; and a file of another kind."""
    path = write_json(tmp_path / "seats.json", compare(PLANNED[:2], SEEN[:2]).to_dict())
    with pytest.raises(BadInput, match="holds 2 ranks, the plan has 4"):
        recorded_seats(PLANNED, path)
    with pytest.raises(BadInput, match="not a seats file"):
        recorded_seats(PLANNED, write_json(tmp_path / "other.json", {"schema": "moeplan/plan/1"}))


def test_gpus_that_nobody_could_name_are_said_to_be_unchecked() -> None:
    """Without NVML the hosts are compared all the same."""
    report = compare(PLANNED, [replace(seat, uuid=None) for seat in SEEN])
    assert report.ok
    assert report.unchecked == ("GPU UUIDs of 4 ranks (first: rank 0): NVML told none",)
