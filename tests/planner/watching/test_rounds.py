"""Rounds of `watch` on a small plan: steady, shifted, back and forth, with faults, and killed between."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from planner.base import BadInput
from planner.cost import cost
from planner.load import load_of_counts
from planner.maps import check_file
from planner.plan import read_plan
from planner.watching import Asked, Running, Terms
from tests.planner.engines.examples import TINY
from tests.planner.watching.watched import FAST, LAYERS, Told, counts, plan_in, watch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the plan that runs."""
    plan_in(tmp_path)
    return tmp_path


def adopt(folder: Path) -> None:
    """What a person does after a restart with the new plan."""
    (folder / "next.json").replace(folder / "plan.json")


def seconds(plan: Path, load: int) -> float:
    saved = read_plan(plan)
    found = load_of_counts(counts(load, 99)[None], LAYERS, TINY, "unseen")
    return cost(saved.problem, saved.placement, found).total_seconds


def test_a_plan_that_pays_is_written_with_its_moves(folder: Path) -> None:
    """Near the one that runs, faster on windows that nobody has seen; PLAN stays as it was."""
    before = (folder / "plan.json").read_bytes()
    found = watch(folder, Told(counts(1), counts(1, 1))).round()
    assert found.look is not None
    assert (found.heard, found.wrote, found.look.verdict.pays) == (2, folder / "next.json", True)
    value = json.loads((folder / "next.json").read_text())
    assert 0 < value["moves"]["share"] <= 0.1
    assert value["moves"]["from"] == str(folder / "plan.json")
    assert check_file(folder / "next.json").ok
    saved = seconds(folder / "plan.json", 1) - seconds(folder / "next.json", 1)
    assert saved == pytest.approx(found.look.verdict.saved_seconds, rel=0.1)
    assert (folder / "plan.json").read_bytes() == before


def test_the_plan_that_pays_is_the_plan_that_holds(folder: Path) -> None:
    """Once it runs, the next window finds nothing to gain."""
    source = Told(counts(1), counts(1, 1))
    watched = watch(folder, source, replace(FAST, most_moves="100%"))
    assert watched.round().wrote is not None
    adopt(folder)
    source.news.append(counts(1, 2))
    found = watched.round()
    assert found.look is not None
    assert (found.look.verdict.pays, found.look.present) == (False, 1)


def test_a_shift_is_followed_at_the_next_window(folder: Path) -> None:
    """The plan is fitted to the windows since the shift alone."""
    source = Told(*(counts(1, draw) for draw in range(4)))
    watched = watch(folder, source)
    watched.round()
    source.news.append(counts(2))
    found = watched.round()
    assert found.look is not None
    assert (found.look.present, found.look.fitted_windows) == (found.number, 1)
    assert found.wrote is not None
    assert seconds(folder / "next.json", 2) < 0.99 * seconds(folder / "plan.json", 2)


def test_without_a_new_window_there_is_nothing_to_look_at(folder: Path) -> None:
    watched = watch(folder, Told(counts(1)))
    assert watched.round().look is not None
    again = watched.round()
    assert (again.heard, again.look, again.wrote) == (0, None, None)


def test_windows_that_a_killed_process_did_not_look_at_are_looked_at(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It heard them, and ended before the look did."""
    source = Told(counts(1))
    watched = watch(folder, source)
    with monkeypatch.context() as patch:
        patch.setattr("planner.watching.rounds.look", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            watched.round()
    watched.close()
    found = watch(folder, source).round()
    assert (found.heard, found.wrote) == (0, folder / "next.json")


def test_a_restart_is_no_gain_where_it_takes_longer_than_it_saves(folder: Path) -> None:
    asked = Asked(terms=Terms(horizon_seconds=60.0, restart_seconds=300.0))
    found = watch(folder, Told(counts(1)), asked).round()
    assert found.look is not None
    assert (found.wrote, found.look.verdict.swap_seconds) == (None, 300.0)
    assert not (folder / "next.json").exists()


def test_faults_are_lines_and_the_next_round_goes_on(folder: Path) -> None:
    source = Told(BadInput("http://h: no answer"), counts(1))
    watched = watch(folder, source)
    found = watched.round()
    assert (found.said, found.faults, found.heard) == (("http://h: no answer",), 1, 0)
    assert watched.round().heard == 2


def test_a_plan_that_goes_bad_is_a_line(folder: Path) -> None:
    """Half a file in its place: what was read last stays, and nothing is written."""
    source = Told(counts(1))
    watched = watch(folder, source)
    whole = (folder / "plan.json").read_bytes()
    (folder / "plan.json").write_bytes(whole[: len(whole) // 2])
    found = watched.round()
    assert (found.faults, found.wrote) == (1, None)
    assert "plan.json" in found.said[0]
    (folder / "plan.json").write_bytes(whole)
    assert watched.round().wrote is not None


def test_a_disk_that_fills_leaves_no_half_plan(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    watched = watch(folder, Told(counts(1)))
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        found = watched.round()
    assert (found.faults, found.wrote) == (1, None)
    assert "No space left" in found.said[0]
    assert sorted(path.name for path in folder.iterdir() if path.suffix == ".json") == ["plan.json"]
    assert watched.round().wrote is not None


def test_next_is_not_plan(folder: Path) -> None:
    with pytest.raises(BadInput, match="name another file"):
        Running(folder / "plan.json", folder / "plan.json")


def test_a_plan_that_survives_losses_is_not_watched(folder: Path) -> None:
    """A re-plan within few moves cannot promise that."""
    value = json.loads((folder / "plan.json").read_text()) | {"resplittable": True}
    (folder / "plan.json").write_text(json.dumps(value))
    with pytest.raises(BadInput):
        Running(folder / "plan.json", folder / "next.json")


def test_the_same_windows_give_the_same_bytes(folder: Path) -> None:
    watch(folder, Told(counts(1), counts(2))).round()
    first = (folder / "next.json").read_bytes()
    (folder / "watch.db").unlink()
    watch(folder, Told(counts(1), counts(2))).round()
    assert (folder / "next.json").read_bytes() == first
