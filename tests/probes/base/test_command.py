"""Running other programs: what they print is kept, and nothing they do can hang or break us."""

import sys
import time
from pathlib import Path

import pytest

from probes.base import command
from probes.base.command import run


def test_good_output_has_no_fault() -> None:
    """Stdout and exit code 0 come back as they are."""
    output = run([sys.executable, "-c", "print('CA')"], 20)
    assert (output.stdout, output.exit_code, output.fault) == ("CA\n", 0, None)


def test_missing_tool_is_named() -> None:
    """A tool that is not installed is a sentence, not a traceback."""
    output = run(["no-such-tool-of-ours", "-v"], 5)
    assert output.exit_code is None
    assert output.fault == "'no-such-tool-of-ours' is not installed (not found on PATH)"


def test_file_that_is_no_program_is_named(tmp_path: Path) -> None:
    """Something on PATH that cannot be executed is a fault too."""
    (tmp_path / "tool").write_text("not a program")
    output = run([str(tmp_path / "tool")], 5)
    assert output.fault is not None
    assert "cannot be started" in output.fault


def test_failure_after_good_output_keeps_it() -> None:
    """Ibstat may print every adapter and then exit with 255: both are told."""
    output = run(
        [
            sys.executable,
            "-c",
            "import sys; print('CA'); print('ibpanic: gone', file=sys.stderr); sys.exit(255)",
        ],
        20,
    )
    assert output.stdout == "CA\n"
    assert output.exit_code == 255
    assert output.fault is not None
    assert output.fault.endswith("ended with exit code 255: ibpanic: gone")


def test_hang_is_killed_with_its_children(tmp_path: Path) -> None:
    """A hang ends at the limit, what was printed is kept, and a child that holds the pipe dies with it."""
    started, mark = time.monotonic(), tmp_path / "survived"
    output = run(["sh", "-c", f"echo early; (sleep 2; touch {mark}) & sleep 60"], 0.5)
    assert time.monotonic() - started < 3
    assert output.stdout == "early\n"
    assert output.fault is not None
    assert "did not end within 0.5 s and was killed" in output.fault
    time.sleep(max(0.0, 2.3 - (time.monotonic() - started)))
    assert not mark.exists()


def test_hang_with_closed_pipes_is_killed() -> None:
    """A program may close its output and still not end."""
    output = run(["sh", "-c", "exec >&- 2>&-; sleep 60"], 0.3)
    assert output.exit_code is None
    assert output.fault is not None


def test_flood_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Endless output ends at a size, not at the end of our memory."""
    monkeypatch.setattr(command, "LARGEST_OUTPUT_BYTES", 1 << 20)
    output = run(["yes"], 20)
    assert output.fault is not None
    assert "printed more than 1,048,576 bytes" in output.fault


def test_death_by_signal_is_told() -> None:
    """A crash is named by its signal."""
    output = run(["sh", "-c", "kill -SEGV $$"], 5)
    assert output.fault is not None
    assert "ended with signal 11" in output.fault
