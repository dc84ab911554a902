"""Programs and a folder that are gone with us, however we end. The processes are those that a test starts."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.base import BadInput
from probes.ranks.keep import GuardianLostError, Kept, kept
from tests.places import ROOT

# a program that starts another in a session of its own, as torch's and Slurm's launchers do, and waits
NESTED = [sys.executable, "-c", "import subprocess as s; s.run(['sleep', '71'], start_new_session=True)"]
SLEEP = ["sleep", "72"]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("MOEPLAN_TEST_MARK", str(tmp_path))
    return tmp_path


def marked(folder: Path) -> list[str]:
    """What runs with this test's mark in its environment, ourselves apart: command lines."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"MOEPLAN_TEST_MARK={folder}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return [line for line in found if line]


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def looked(programs: Kept) -> Kept:
    programs.look()
    return programs


def test_exit_codes_signals_and_what_could_not_start(temporary: Path) -> None:
    """By number of the program; its words are in its file, and it has what was added to the environment."""
    with kept("moeplan-test-") as here:
        here.start(0, ["sh", "-c", "echo $ADDED; exit 3"], {"ADDED": "word"}, here.folder / "out-0")
        here.start(1, ["sh", "-c", "kill -9 $$"], {}, here.folder / "out-1")
        here.start(2, ["no-such-program"], {}, here.folder / "out-2")
        wait_for(lambda: len(looked(here).codes) == 3)
        assert here.codes == {0: 3, 1: -9, 2: 127}
        assert here.reasons == {2: "no-such-program: No such file or directory"}
        assert (here.folder / "out-0").read_text() == "word\n"
    assert list(temporary.iterdir()) == []
    assert marked(temporary) == []


def test_programs_end_with_the_block(temporary: Path) -> None:
    """Those that a program has started in a session of its own, too."""
    with kept("moeplan-test-") as here:
        here.start(0, NESTED, {}, here.folder / "out-0")
        wait_for(lambda: any("sleep 71" in line for line in marked(temporary)))
    assert list(temporary.iterdir()) == []
    assert marked(temporary) == []


PARENT = """
import sys, tempfile, time
from probes.ranks.keep import kept
tempfile.tempdir = sys.argv[1]
with kept("moeplan-test-") as here:
    here.start(0, sys.argv[2:], {}, here.folder / "out-0")
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("program", [NESTED, ["sh", "-c", "trap '' HUP TERM INT; sleep 71; sleep 71"]])
def test_nothing_outlives_a_parent_that_is_killed(program: list[str], temporary: Path) -> None:
    """SIGKILL, which nobody can handle: program, guardian and folder are gone in a moment."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(temporary), *program], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    with parent.stdout:
        assert parent.stdout.readline() == b"ready\n"
        wait_for(lambda: any("sleep 71" in line for line in marked(temporary)))
        parent.kill()
        parent.wait(10)
    wait_for(lambda: not marked(temporary), seconds=5)
    assert list(temporary.iterdir()) == []


def test_a_guardian_that_is_killed_is_noticed(temporary: Path) -> None:
    """The folder is removed by us; a program that asks for it dies with the guardian."""
    code = "import probes.ranks.keep as k, time; k.die_with_guardian(); print(1, flush=True); time.sleep(60)"
    with pytest.raises(GuardianLostError), kept("moeplan-test-") as here:  # noqa: PT012 - the block is the case
        output = here.folder / "out-0"
        here.start(0, [sys.executable, "-c", code], {"PYTHONPATH": str(ROOT)}, output)
        wait_for(lambda: 0 in looked(here).pids and output.read_text() == "1\n")
        os.kill(parent_of(here.pids[0]), signal.SIGKILL)
        wait_for(lambda: not marked(temporary))
        here.look()
    assert list(temporary.iterdir()) == []


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def test_the_folder_of_a_run_that_was_killed_with_its_guardian_is_removed_by_the_next(
    temporary: Path,
) -> None:
    """Not one that is still guarded, nor one of another machine, whose locks may not be seen here."""
    with kept("moeplan-test-") as other:
        lock = (other.folder / "guarded").read_bytes()
        for name, content in (("moeplan-dead", lock), ("moeplan-far", b"another boot"), ("mine", lock)):
            (temporary / name).mkdir()
            (temporary / name / "guarded").write_bytes(content)
        with kept("moeplan-test-") as here:
            left = {folder.name for folder in temporary.iterdir()}
            assert left == {"moeplan-far", "mine", other.folder.name, here.folder.name}


def test_where_no_folder_can_be_made_it_says_so(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TMPDIR that is gone, or may not be written."""
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "gone"))
    with (
        pytest.raises(BadInput, match=r"no folder for temporary files \(.*No such file.*set TMPDIR"),
        kept("moeplan-test-"),
    ):
        pass
