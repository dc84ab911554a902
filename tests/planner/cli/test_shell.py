"""What a shell sees: completion, NO_COLOR, progress by lines, and a quick --help."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from planner.engines import engine_names
from tests.places import ROOT

MOEPLAN = "import sys; sys.argv[0] = 'moeplan'; from planner.cli import main; main(prog_name='moeplan')"


def completed(*words: str) -> list[str]:
    """What bash is offered for the last of the words."""
    line = " ".join(["moeplan", *words])
    asked = {"_MOEPLAN_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    done = subprocess.run(
        [sys.executable, "-c", MOEPLAN],
        env={**os.environ, **asked, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return [entry.partition(",")[2] for entry in done.stdout.splitlines()]


def test_names_are_completed_wherever_they_are_asked_for() -> None:
    """Models with their aliases, presets, engines; options of any command and arguments."""
    assert "deepseek-v3" in completed("solve", "--model", "deepseek")
    assert "hgx-h100" in completed("solve", "--topology", "hgx")
    assert completed("emit", "plan.json", "--engine", "") == list(engine_names())
    assert "gb200-nvl72" in completed("topology", "show", "gb2")
    assert "mixtral" in completed("model", "show", "mix")
    assert completed("engine", "show", "sgl") == ["sglang"]
    assert "slurm" in completed("emit", "plan.json", "--launcher", "sl")


def test_a_file_is_completed_where_no_name_begins_like_it() -> None:
    """The shell is told to complete files itself."""
    assert completed("solve", "--topology", "./clu") == ["./clu"]


def on_terminal(words: list[str], **environment: str) -> str:
    """What a command writes to a terminal, stdout and stderr."""
    parent, child = pty.openpty()
    settings = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **environment}
    with subprocess.Popen(
        [sys.executable, "-m", "planner", *words], stdout=child, stderr=child, env=settings
    ) as process:
        os.close(child)
        found = b""
        while True:
            try:
                more = os.read(parent, 65536)
            except OSError:
                break
            if not more:
                break
            found += more
        process.wait(60)
    os.close(parent)
    return found.decode()


SOLVE = [
    "solve",
    "--model",
    "mixtral",
    "--topology",
    "hgx-h100:1x4",
    "--redundant",
    "4",
    "--method",
    "refine",
]


@pytest.mark.parametrize("words", [SOLVE, ["model", "list"], ["topology", "show", "hgx-h100"]])
def test_no_color_leaves_no_escape(words: list[str]) -> None:
    """Neither in tables nor in progress; without it there are some, so that the test can fail."""
    assert "\x1b" not in on_terminal(words, NO_COLOR="1")
    assert "\x1b" in on_terminal(words, NO_COLOR="")


def test_progress_is_told_by_lines_where_that_is_asked_for(tmp_path: Path) -> None:
    """Each step once, in order, on stderr; nothing in a pipe where nobody asked."""
    words = [sys.executable, "-m", "planner"]
    solve = [
        "solve",
        "--model",
        "mixtral",
        "--topology",
        "hgx-h100:1x4",
        "--prove",
        "--method",
        "greedy",
        "-o",
        str(tmp_path / "p.json"),
    ]
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    quiet = subprocess.run([*words, *solve], env=settings, capture_output=True, text=True, check=True)
    assert quiet.stderr == ""
    told = subprocess.run(
        [*words, "--progress", "lines", *solve], env=settings, capture_output=True, text=True, check=True
    )
    assert told.stdout == quiet.stdout  # no --budget: a clock would give two runs two plans
    steps = ("reading", "curve over R", "searching layers", "proving", "judging")
    places = [told.stderr.index(step) for step in steps]
    assert places == sorted(places)
    assert all(line.startswith("solve: ") for line in told.stderr.splitlines())
