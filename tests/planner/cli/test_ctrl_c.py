"""Ctrl-C in `solve`: once the question is read, a plan is written that says that it is cut short."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from planner.base import finishing
from planner.cli import main
from planner.plan import judged
from planner.planning.solving import quick_placement
from planner.solvers import Search
from tests.strategies import problem_of

SOLVE = ("solve", "--model", "mixtral", "--topology", "hgx-h100:2x2", "--workers", "1")
STAGES = {
    "the curve over R": ("planner.planning.redundancy._next", ()),
    "before the first candidate": ("planner.solvers.methods.auto._candidates", ("--redundant", "4")),
    "the search of a method": (
        "planner.solvers.methods.refine.solve",
        ("--redundant", "4", "--method", "refine"),
    ),
    "levelling": ("planner.solvers.search.levelled", ("--redundant", "4")),
    "settling": (
        "planner.solvers.search.settled_rows",
        ("--redundant", "4", "--replica-rule", "nearest-static"),
    ),
    "dispersal": (
        "planner.solvers.search.disperse",
        ("--redundant", "8", "--survive", "1", "--context", "512"),
    ),
    "proving": ("planner.planning.solving.prove", ("--redundant", "4", "--prove")),
    "what comes after": ("planner.planning.narrower.narrower", ("--redundant", "4")),
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without CP-SAT, which takes seconds."""
    monkeypatch.setattr("planner.solvers.methods.cpsat.SMALL_CELLS", 0)


def pressed(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize("stage", STAGES)
def test_the_best_so_far_is_written(stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole plan that `check` passes, with a note; one line, exit code 130."""
    where, flags = STAGES[stage]
    monkeypatch.setattr(where, pressed)
    path = tmp_path / "plan.json"
    result = CliRunner().invoke(main, [*SOLVE, *flags, "-o", str(path)])
    assert result.exit_code == 130, result.output
    assert result.stderr == f"moeplan: interrupted; {path} holds the best plan found so far\n"
    assert any("stopped by Ctrl-C" in note for note in json.loads(path.read_text())["notes"])
    assert CliRunner().invoke(main, ["check", str(path)]).exit_code == 0


def test_a_replan_that_is_cut_short_keeps_what_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No move."""
    running, path = tmp_path / "running.json", tmp_path / "plan.json"
    quick = [*SOLVE, "--redundant", "4", "--method", "greedy"]
    assert CliRunner().invoke(main, [*quick, "-o", str(running)]).exit_code == 0
    monkeypatch.setattr("planner.planning.replanning.moving.replanned_within", pressed)
    result = CliRunner().invoke(main, [*quick, "--from", str(running), "-o", str(path)])
    assert result.exit_code == 130
    moves = json.loads(path.read_text())["moves"]
    assert (moves["moved_slots"], result.stderr.count("\n")) == (0, 1)


def test_ctrl_c_while_judging_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan is found: it is judged to the end, and what comes after is left out."""

    def judged_under_pressure(*given: Any, **settings: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return judged(*given, **settings)

    monkeypatch.setattr("planner.planning.solving.judged", judged_under_pressure)
    path = tmp_path / "plan.json"
    result = CliRunner().invoke(main, [*SOLVE, "--redundant", "4", "--method", "greedy", "-o", str(path)])
    assert result.exit_code == 130
    assert "when the plan was found" in " ".join(json.loads(path.read_text())["notes"])


def test_a_second_ctrl_c_goes_through() -> None:
    """Who presses twice does not want to wait."""
    with finishing() as noted:
        os.kill(os.getpid(), signal.SIGINT)
        assert noted == [signal.SIGINT]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_a_question_beside_others_is_not_answered_by_half_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the plan is none of the answer, Ctrl-C ends the whole command."""
    monkeypatch.setattr("planner.solvers.methods.refine.solve", pressed)
    problem = problem_of([[4, 3, 2, 1]], gpus=2, slots_per_gpu=3)
    with pytest.raises(KeyboardInterrupt):
        quick_placement(problem, Search("refine"), None)
