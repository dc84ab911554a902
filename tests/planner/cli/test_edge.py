"""The edge to the terminal: what files say cannot act on it, and no stream's state is a traceback."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.table import Table
from rich.text import Text

from planner.base import BadInput, dump_json, flat, harmless, write_json
from planner.cli import main
from planner.cli.console import Refused, say, tell
from planner.cli.tables import Tables
from planner.maps import emit_plan, write_emission
from planner.plan import write_plan
from tests.places import ROOT
from tests.planner.schema.seeds import plain, plan, seeds

EVIL = "a\x1b]0;EVIL\x07\x1b[2J\x9b31m\r\u202e\u2028b\x7f\ud800"
SOLVE = [sys.executable, "-m", "planner", "solve", "--model", "mixtral", "--topology", "hgx-h100:2x2"]


def acts(text: str) -> bool:
    return harmless(text) != text


@pytest.mark.parametrize("how", ["tell", "say", "table", "text", "json", "fault"])
def test_nothing_that_is_printed_acts(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line, a report, a table, JSON, a fault."""
    table = Table(EVIL)
    table.add_row(EVIL)
    printed: dict[str, Any] = {
        "tell": lambda: tell(EVIL, err=True),
        "say": lambda: say(EVIL, None, as_json=False),
        "table": lambda: say(table, None, as_json=False),
        "text": lambda: say(Text(EVIL, style="bold"), None, as_json=False),
        "json": lambda: say("", {EVIL: [EVIL]}, as_json=True),
        "fault": lambda: Refused(EVIL).show(),
    }
    printed[how]()
    found = "".join(capsys.readouterr())
    assert "EVIL" in found
    assert not acts(found)


def test_colours_of_our_own_stay() -> None:
    """On a terminal rich's escapes are printed, a file's are not."""
    console = Tables(force_terminal=True, color_system="standard", width=80)
    with console.capture() as captured:
        console.print(Text(EVIL, style="red"))
    assert captured.get().startswith("\x1b[31ma\\x1b]0;EVIL")


def test_only_the_console_prints() -> None:
    """One place decides what reaches the terminal. The two others are programs of their own, into a pipe."""
    prints = re.compile(r"(?<![\w.])print\(|click\.s?echo\(|sys\.std(out|err)\.write\(")
    found = [
        path.name
        for path in [*(ROOT / "planner").rglob("*.py"), *(ROOT / "probes").rglob("*.py")]
        if prints.search(path.read_text(encoding="utf-8"))
    ]
    assert sorted(found) == ["console.py", "fastdeploy_relay.py", "worker.py"]


def test_what_we_write_is_lines_that_we_read(tmp_path: Path) -> None:
    """Whatever a host or a message was called, the file of it is read again."""
    write_json(tmp_path / "x.json", {"name\n": ["two\nlines", {"a": EVIL}], "n": [1, 2]})
    text = (tmp_path / "x.json").read_text()
    assert json.loads(text)["name "][0] == "two lines"
    assert "\\u001b" not in text
    assert flat(json.loads(text)["name "][1]["a"]) == json.loads(text)["name "][1]["a"]


@pytest.mark.parametrize(
    ("kind", "place"),
    [("topology", "name"), ("topology", "source"), ("load", "source"), ("load", "phase"), ("probe", "taken")],
)
@pytest.mark.parametrize("letter", ["\x1b", "\n", "\x9b", "\u202e", "\x00"])
def test_a_file_of_ours_with_such_a_character_is_refused(kind: str, place: str, letter: str) -> None:
    from planner.cli.schema import kinds

    with pytest.raises(BadInput, match=place) as caught:
        kinds()[kind].check({**seeds()[kind], place: f"a{letter}b"}, "file")
    assert not acts(str(caught.value))


@pytest.mark.parametrize("launcher", ["shell", "slurm"])
def test_no_script_or_manifest_holds_one(launcher: str, tmp_path: Path) -> None:
    """A name in the flags that would act is refused, and nothing is written."""
    file = write_plan(plan(), tmp_path / "plan.json")
    words = ["emit", str(file), "--engine", "trtllm", "-o", str(tmp_path / "out"), "--launcher", launcher]
    words += ["--model-path", f"model{EVIL[:9]}", "--hosts", "n0,n1", "--image", "x"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "would hold a control character" in result.output
    assert not acts(result.output)
    assert not (tmp_path / "out").exists()


def test_a_name_with_a_line_break_starts_no_command(tmp_path: Path) -> None:
    """A plan of a model whose name has one is not read; so that no script can hold it."""
    value = plain(seeds()["plan"])
    value["model"]["name"] = "x\ntouch harm"
    (tmp_path / "plan.json").write_text(dump_json(value))
    with pytest.raises(BadInput, match="'name' is 'x"):
        write_emission(emit_plan(tmp_path / "plan.json", "vllm"), tmp_path / "plan.json", tmp_path / "out")


@pytest.mark.parametrize("closed", [(1,), (0, 1, 2)])
def test_a_closed_stream_loses_no_result(closed: tuple[int, ...], tmp_path: Path) -> None:
    """The plan is written, and no file of it takes the stream's number."""

    def close() -> None:
        for number in closed:
            os.close(number)

    done = subprocess.run(
        [*SOLVE, "--method", "linear", "-o", tmp_path / "plan.json"], preexec_fn=close, check=False
    )
    assert done.returncode == 0
    assert json.loads((tmp_path / "plan.json").read_text())["schema"] == "moeplan/plan/1"


def test_a_full_output_is_one_line() -> None:
    words = [sys.executable, "-m", "planner", "schema", "emission"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr == b"moeplan: the output cannot be written (No space left on device)\n"


def test_a_latin_1_terminal_prints_what_it_has(tmp_path: Path) -> None:
    """Letters that it lacks are spelt out."""
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    name = str(tmp_path / "Ω\x1b.json")
    done = subprocess.run(
        [sys.executable, "-m", "planner", "check", name], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"\\u03a9\\x1b.json: cannot be read" in done.stderr
    assert b"Traceback" not in done.stderr
