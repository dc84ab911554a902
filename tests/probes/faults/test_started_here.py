"""Faults of ranks that the command starts itself: one line, in time, and nothing left.

`campaign.py` beside this draws many more of them.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from probes.emulation.namespaces import unavailable
from tests.probes.faults.runs import one_line, running
from tests.probes.faults.task import Fault

NO_CLUSTER = unavailable()
needs_namespaces = pytest.mark.skipif(
    NO_CLUSTER is not None, reason=f"no emulated cluster here: {NO_CLUSTER}"
)
pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found through Linux's /proc"),
]


class TestStartedHere:
    """Ranks that the command starts itself."""

    @pytest.mark.parametrize(
        ("fault", "says"),
        [
            ("kill:1:start", "rank 1: killed (SIGKILL) in 'start'"),
            ("kill:0:import of torch", "rank 0: killed (SIGKILL) in 'import of torch'"),
            ("kill:0:start of the process group", "rank 0: killed (SIGKILL) in 'start of the process group'"),
            ("kill:1:timing", "rank 1: killed (SIGKILL) in 'timing'"),
            ("kill:1:end", "rank 1: killed (SIGKILL) in 'end'"),
            ("term:0:preparation", "rank 0: killed (SIGTERM) in 'preparation'"),
            ("stop:1:import of torch", "rank 1: stopped (SIGSTOP) in 'import of torch'; the run was ended"),
            ("memory:1:timing", "rank 1 failed in 'timing': out of memory"),
            ("refuse:1:start", "rank 1 failed in 'start': this host has no NVML"),
        ],
    )
    def test_a_rank_that_stops_is_named(self, fault: str, says: str, tmp_path: Path) -> None:
        """At once, whatever the others wait for."""
        with running("local", Fault.of(fault), tmp_path) as run:
            run.start().finish()
            assert says in one_line(run)
            assert run.left() == []

    @pytest.mark.parametrize(
        ("fault", "seconds", "says"),
        [
            ("none:0:", 0.5, "'; the run was ended after 0.5 s"),
            ("hang:1:start", 10, "rank 1: busy in 'start'; the run was ended after 10 s"),
        ],
    )
    def test_the_time_is_over(self, fault: str, seconds: float, says: str, tmp_path: Path) -> None:
        """In whatever phase."""
        with running("local", Fault.of(fault), tmp_path, seconds=seconds) as run:
            run.start().finish()
            assert says in one_line(run)
            assert run.left() == []

    @pytest.mark.parametrize(
        ("number", "phase"),
        [
            (signal.SIGKILL, "start"),
            (signal.SIGKILL, "timing"),
            (signal.SIGHUP, "timing"),
            (signal.SIGTERM, "import of torch"),
            (signal.SIGINT, "start of the process group"),
        ],
    )
    def test_the_command_itself_is_ended(self, number: signal.Signals, phase: str, tmp_path: Path) -> None:
        """Ranks, guardian and folder go with it, in a moment."""
        with running("local", Fault("slow"), tmp_path) as run:
            run.start()
            run.wait_for_phase(0, phase)
            run.programs[0].process.send_signal(number)
            run.finish()
            assert run.left() == []
            if number == signal.SIGKILL:
                assert run.programs[0].code == -number
            else:
                assert run.programs[0].code == 128 + number
                assert one_line(run).startswith(("moeplan: ended by SIG", "moeplan: interrupted"))

    def test_the_guardian_is_killed(self, tmp_path: Path) -> None:
        """The ranks die with it, and the command cleans up."""
        with running("local", Fault("slow"), tmp_path) as run:
            run.start()
            run.wait_for_phase(1, "timing")
            guardian = next(pid for pid, command in run.marked().items() if "guardian.py" in command)
            os.kill(guardian, signal.SIGKILL)
            run.finish()
            assert "the process that guards the ranks was killed" in one_line(run)
            assert run.left() == []

    def test_two_runs_at_once_do_not_meet(self, tmp_path: Path) -> None:
        """In the same folder for temporary files."""
        with running("local", Fault(), tmp_path) as one, running("local", Fault(), tmp_path) as other:
            one.start()
            other.start()
            for run in (one, other):
                run.finish()
                assert (run.programs[0].code, run.programs[0].out) == (0, "found 2\n")
            assert one.left() == []

    @pytest.mark.parametrize(
        ("size", "fault", "says"),
        [
            ("4k", "none:0:", "set TMPDIR to a folder with room"),
            ("1m", "disk:1:timing", "No space left on device"),
        ],
    )
    def test_the_disk_is_full(self, size: str, fault: str, says: str, tmp_path: Path) -> None:
        """Before ranks start, and when they write what they found: a mount of its own."""
        mount = f'mount -t tmpfs -o size={size} faults {tmp_path} && exec "$@"'
        before = ("unshare", "--mount", "--propagation", "private", "sh", "-c", mount, "sh")
        if shutil.which("unshare") is None or subprocess.run([*before, "true"], check=False).returncode:
            pytest.skip("this system lets us mount no small disk")
        with running("local", Fault.of(fault), tmp_path) as run:
            run.start(before=before).finish()
            assert says in one_line(run)
            assert run.left() == []


@needs_namespaces
class TestEmulated:
    """Ranks in network namespaces, with links that can fail."""

    def test_a_link_that_is_cut_is_named(self, enough_seconds: float, tmp_path: Path) -> None:
        """Of three ranks the one that nobody reaches, when the time is over."""
        with running("emulated", Fault("cut", 2, "timing"), tmp_path, ranks=3, seconds=enough_seconds) as run:
            run.start().finish()
            assert "rank 2 cannot be reached over the network in 'timing'" in one_line(run)
            assert run.left() == []

    def test_the_command_is_killed(self, tmp_path: Path) -> None:
        """No process is left that would hold a namespace."""
        with running("emulated", Fault("slow"), tmp_path) as run:
            run.start()
            run.wait_for_phase(1, "timing")
            run.programs[0].process.kill()
            run.finish()
            assert run.left() == []

    def test_a_rank_that_is_killed_is_named(self, tmp_path: Path) -> None:
        """With its phase."""
        with running("emulated", Fault("kill", 1, "preparation"), tmp_path) as run:
            run.start().finish()
            assert "rank 1: killed (SIGKILL) in 'preparation'" in one_line(run)
            assert run.left() == []
