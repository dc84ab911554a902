"""One rank's seat, and the gathering of all over a folder."""

from pathlib import Path
from threading import Thread

import pytest

from planner.base import BadInput
from planner.topology import Seat
from probes.nvml.seat import _own_uuid
from probes.ranks.launch import Launch
from probes.survey.seat import gather_seats

UUIDS = ("GPU-aa1", "GPU-aa2", "GPU-b", "GPU-c")


def launch(rank: int, world: int = 3, run: str | None = "17") -> Launch:
    return Launch("srun", rank, world, rank, run=run)


@pytest.mark.parametrize(
    ("local", "visible", "uuid"),
    [
        (2, None, "GPU-b"),
        (1, "3,2", "GPU-b"),
        (3, "2", "GPU-b"),
        (0, "GPU-c", "GPU-c"),
        (0, "GPU-b,GPU-c", "GPU-b"),
        (1, "GPU-aa,GPU-b", "GPU-b"),
        (0, "GPU-aa,GPU-b", None),
        (4, None, None),
        (0, "9", None),
        (0, "MIG-x", None),
    ],
)
def test_the_gpu_of_a_rank(local: int, visible: str | None, uuid: str | None) -> None:
    """The one of its number among the visible ones, by index or UUID; its only one; none where that is
    ambiguous or unknown.
    """
    assert _own_uuid(local, visible, UUIDS) == uuid


def test_a_machine_without_gpus_has_none() -> None:
    """Nothing to name."""
    assert _own_uuid(0, None, ()) is None


def test_rank_0_gets_all_seats_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """The others get none; a file of another launch in the folder is neither read nor removed."""
    (tmp_path / "seat-16-1.json").write_text("another launch's")
    seats = [Seat(rank, f"host{rank}", rank, uuid=f"GPU-{rank}") for rank in range(3)]
    others = [Thread(target=gather_seats, args=(seats[rank], launch(rank), tmp_path, 10)) for rank in (1, 2)]
    for other in others:
        other.start()
    assert gather_seats(seats[0], launch(0), tmp_path, 10) == tuple(seats)
    for other in others:
        other.join()
    assert [path.name for path in tmp_path.iterdir()] == ["seat-16-1.json"]
    assert gather_seats(seats[1], launch(1), tmp_path, 10) is None


def test_a_rank_that_does_not_come_is_named(tmp_path: Path) -> None:
    """After the time limit, and without files that the next start would find."""
    own = Seat(0, "here", 0)
    with pytest.raises(BadInput, match=r"no seat of rank 1, 2 after 0\.2 s"):
        gather_seats(own, launch(0), tmp_path, 0.2)
    assert not list(tmp_path.iterdir())
    with pytest.raises(BadInput, match="not a folder on host here"):
        gather_seats(own, launch(0), tmp_path / "absent", 0.2)
