"""The command `moeplan watch`: a round for cron, its lines and its JSON, and what it refuses."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from planner.cli import main
from tests.planner.watching.watched import counts, plan_in
from tests.probes.watching.test_folders import write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a plan that runs and two windows of another load."""
    plan_in(tmp_path)
    for number in range(2):
        write(tmp_path / "load_windows", number, counts(1, number))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def watch(*words: str) -> Result:
    return CliRunner().invoke(main, ["watch", "plan.json", "--folder", "load_windows", *words])


def test_one_round(folder: Path) -> None:
    """Says that re-planning pays, by what, and what it wrote; the next round finds nothing new."""
    first, second = watch("--once"), watch("--once")
    assert first.exit_code == 0, first.output
    verdict, wrote = first.output.splitlines()
    assert verdict.startswith("round 1: 2 new windows, 2 in all; re-planning pays: another plan saves ")
    assert wrote.startswith("wrote plan.next.json: ")
    assert (folder / "plan.next.json").is_file()
    assert second.output == "round 1: 0 new windows, 2 in all; nothing to look at\n"


def test_a_round_as_json(folder: Path) -> None:
    found = json.loads(watch("--once", "--json", "-o", "other.json", "--max-moves", "0").output)
    assert (found["new_windows"], found["pays"], found["moved_share"], found["said"]) == (2, False, 0.0, [])
    assert not (folder / "other.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--horizon", "soon"), "cannot read 'soon' as a time"),
        (("--every", "0"), "--every 0"),
        (("--source", "sglan"), "known are"),
        (("--state", "plan.json"), "no file of `moeplan watch`"),
        (("-o", "plan.json"), "PLAN is what runs"),
        (("--max-moves", "half"), "a whole number of moves"),
    ],
)
def test_what_cannot_be_is_one_line(words: tuple[str, ...], said: str, folder: Path) -> None:
    result = watch("--once", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.strip().splitlines()
    assert said in line


def test_a_round_in_which_something_could_not_be_read_exits_with_1(folder: Path) -> None:
    """For whoever runs it from cron; what could be read was looked at."""
    write(folder / "load_windows", 9, counts(1)[:, :32])
    result = watch("--once")
    assert result.exit_code == 1
    assert result.output.startswith("note: load_windows/window-moe-")
    assert (folder / "plan.next.json").is_file()


def test_metrics_go_into_a_file(folder: Path) -> None:
    """Of the round: what came, what another plan would save; whole lines with help and type."""
    assert watch("--once", "--metrics", "watch.prom").exit_code == 0
    lines = (folder / "watch.prom").read_text().splitlines()
    values = dict(line.split() for line in lines if not line.startswith("#"))
    assert values["moeplan_watch_windows_total"] == "2"
    assert values["moeplan_watch_pays"] == "1"
    assert 0.01 < float(values["moeplan_watch_gain_ratio"]) < 1
    assert len(lines) == 3 * len(values)


def test_an_engine_that_cannot_swap(folder: Path) -> None:
    """Nothing is heard or written."""
    value = json.loads((folder / "plan.json").read_text()) | {"engine": "sglang"}
    (folder / "plan.json").write_text(json.dumps(value))
    result = watch("--once", "--apply", "--source", "dumps")
    assert (result.exit_code, "take a placement while they serve" in result.stderr) == (2, True)
    assert not (folder / "plan.watch.db").exists()


def test_ctrl_c_ends_it_in_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between rounds: what was heard is kept, and the line says where."""

    def stopped(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", stopped)
    result = watch("--every", "1")
    assert result.exit_code == 130
    assert result.stderr.startswith("moeplan: ended; plan.watch.db has what was heard")
    assert watch("--once").output.startswith("round 1: 0 new windows, 2 in all")
