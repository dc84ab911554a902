"""Who is named when a run stops."""

from pathlib import Path

import pytest

from probes.ranks.status import BUSY, DONE, FAILED, WAITING, FileStatus, Place, laggards, make_files, told
from probes.ranks.status import read_places as read


def place(
    rank: int, step: int = 1, state: str = WAITING, *, code: int | None = None, stopped: bool = False
) -> Place:
    return Place(rank, step, state, "dispatch", code=code, stopped=stopped)


def named(*places: Place) -> list[int]:
    return [seen.rank for seen in laggards(places)]


def test_phases_and_waiting_are_read_back(tmp_path: Path) -> None:
    """A rank's step, phase and whether it waits; one that has not begun is in 'start'."""
    make_files(tmp_path, 2)
    status = FileStatus(tmp_path, 1)
    status.enter("dispatch of layer 3 (plan)")
    status.wait(waiting=True)
    assert read(tmp_path, 2, {}, {}) == [
        Place(0, 0, BUSY, "start"),
        Place(1, 1, WAITING, "dispatch of layer 3 (plan)"),
    ]
    status.enter("combine")
    assert read(tmp_path, 2, {}, {})[1] == Place(1, 2, BUSY, "combine")


def test_a_rank_tells_why_it_failed_on_a_disk_that_is_full(tmp_path: Path) -> None:
    """Nothing that it writes makes its file longer; the phase is the one in which it failed."""
    make_files(tmp_path, 1)
    size = (tmp_path / "rank-0").stat().st_size
    status = FileStatus(tmp_path, 0)
    status.enter("é" * 300)
    status.enter("combine")
    status.fail("no room, nowhere " * 300)
    seen = read(tmp_path, 1, {}, {0: 1})[0]
    assert (seen.state, seen.phase, seen.reason[:7], seen.vanished) == (FAILED, "combine", "no room", False)
    assert (tmp_path / "rank-0").stat().st_size == size


@pytest.mark.parametrize(
    ("code", "state", "vanished", "how"),
    [
        (None, BUSY, False, "busy"),
        (-9, WAITING, True, "killed (SIGKILL)"),
        (-99, BUSY, True, "killed (signal 99)"),
        (1, BUSY, True, "ended (exit code 1)"),
        (0, DONE, False, "ended (exit code 0)"),
    ],
)
def test_a_rank_that_ended_without_a_word_has_vanished(
    code: int | None, state: str, vanished: bool, how: str
) -> None:
    """How it ended is the kernel's word, not its own."""
    seen = place(1, state=state, code=code)
    assert (seen.vanished, seen.how) == (vanished, how)


def test_the_dead_come_first_then_the_stopped_then_the_busy() -> None:
    """Four pictures of the same stop."""
    assert named(place(0), place(1, code=-9), place(2, stopped=True)) == [1]
    assert named(place(0), place(1, state=BUSY), place(2, stopped=True)) == [2]
    assert named(place(0), place(1, state=BUSY), place(2)) == [1]
    assert named(place(0, 2, BUSY), place(1), place(2, 2)) == [1]


def test_ranks_that_are_done_are_never_named() -> None:
    """And where all of the others wait, all are named, together."""
    assert named(place(0, state=DONE, code=0), place(1), place(2)) == [1, 2]
    assert named(place(0, state=DONE, code=0)) == []
    assert told([place(1), place(2)]) == "ranks 1, 2: waiting for the others in 'dispatch'"
