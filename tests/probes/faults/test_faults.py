"""Faults of every kind, in every phase, in every way of starting: one line, in time, and nothing left.

The line names the rank and its phase. `campaign.py` beside this draws many more of them.
"""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from probes.emulation.namespaces import unavailable
from tests.probes.faults.runs import Run, running, wait_until
from tests.probes.faults.task import Fault

NO_CLUSTER = unavailable()
needs_namespaces = pytest.mark.skipif(
    NO_CLUSTER is not None, reason=f"no emulated cluster here: {NO_CLUSTER}"
)
pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found through Linux's /proc"),
]
LATE_SECONDS = 12.0  # beyond the limit: calling the roll, telling each other, cleaning up, on a busy machine


def one_line(run: Run, number: int = 0) -> str:
    """What that program said: a line, and no traceback."""
    program = run.programs[number]
    assert program.code not in (0, -signal.SIGALRM), program.err
    assert len(program.lines) == 1, program.err
    assert "Traceback" not in program.err
    return program.lines[0]


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
            ("none:0:", 0.5, "in 'start'; the run was ended after 0.5 s"),
            ("hang:1:import of torch", 4, "rank 1: busy in 'import of torch'; the run was ended after 4 s"),
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


class TestLaunched:
    """Ranks that somebody else starts, one program each."""

    def test_a_rank_that_is_killed_is_missed(self, tmp_path: Path) -> None:
        """Within seconds, by all others."""
        with running("launched", Fault.of("kill:1:timing"), tmp_path) as run:
            run.start().finish()
            assert "no answer from rank 1 in 'timing'; look at that rank's own log" in one_line(run)
            assert run.left() == []

    def test_a_rank_that_is_stopped_is_missed_when_the_time_is_over(self, tmp_path: Path) -> None:
        """It cannot be told from a slow one before."""
        with running("launched", Fault.of("stop:1:timing"), tmp_path, seconds=20) as run:
            run.start()
            run.programs[0].finish(run.patience())
            assert "no answer from rank 1 in 'timing'" in one_line(run)

    @pytest.mark.parametrize(
        ("fault", "says"),
        [
            ("refuse:1:start", "rank 1 on {host} failed in 'start': this host has no NVML"),
            ("refuse:0:start", "rank 0 on {host} failed in 'start': this host has no NVML"),
            ("memory:1:timing", "rank 1 on {host} failed in 'timing': out of memory"),
        ],
    )
    def test_a_rank_that_fails_tells_the_others_why(self, fault: str, says: str, tmp_path: Path) -> None:
        """Before the run begins, as on a host without NVML, and in it."""
        failing = Fault.of(fault).rank
        with running("launched", Fault.of(fault), tmp_path, seconds=120) as run:
            run.start().finish()
            assert says.format(host=socket.gethostname()) in one_line(run, 1 - failing)
            assert one_line(run, failing)
            assert max(program.seconds for program in run.programs) < 120
            assert run.left() == []

    def test_a_bug_of_a_rank_keeps_its_traceback(self, tmp_path: Path) -> None:
        """In its own log; the others have a line."""
        with running("launched", Fault.of("bug:1:preparation"), tmp_path) as run:
            run.start().finish()
            assert "ArithmeticError: raised on purpose by a test" in run.programs[1].err
            assert "failed in 'preparation': a fault of moeplan's own, ArithmeticError" in one_line(run)

    def test_a_rank_that_hangs_ends_by_itself(self, tmp_path: Path) -> None:
        """Soon after the time is over, with a line; the others have missed it."""
        with running("launched", Fault.of("hang:1:timing"), tmp_path, seconds=20) as run:
            run.start().finish()
            assert "no answer from rank 1 in 'timing'" in one_line(run)
            assert one_line(run, 1) == "moeplan: rank 1 hangs in 'timing'; the run was ended after 20 s"
            assert run.left() == []

    def test_a_signal_is_heard_inside_a_collective(self, tmp_path: Path) -> None:
        """Rank 0 waits for one that is stopped, and no handler of Python runs: it ends at once all the same."""
        with running("launched", Fault.of("stop:1:timing"), tmp_path) as run:
            run.start()
            stopped = run.programs[1].process.pid
            wait_until(lambda: state_of(stopped) == "T", "rank 1 stops")
            time.sleep(0.5)
            run.programs[0].process.send_signal(signal.SIGTERM)
            asked = time.monotonic()
            run.programs[0].finish(run.patience())
            assert time.monotonic() - asked < LATE_SECONDS
            assert run.programs[0].code == 128 + signal.SIGTERM
            assert one_line(run) == "moeplan: rank 0 hangs in 'timing'; ended by SIGTERM"

    def test_the_port_is_taken(self, tmp_path: Path) -> None:
        """By a program that is none of ours: rank 0 says so at once."""
        with socket.socket() as taken, running("launched", Fault(), tmp_path, seconds=10) as run:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            run.start({"MASTER_PORT": str(taken.getsockname()[1])}).finish()
            assert "is taken; set MASTER_PORT to a free one for every rank" in one_line(run)
            assert "rank 1 hangs in 'meeting at 127.0.0.1:" in one_line(run, 1)
            assert run.left() == []


class TestTorchrun:
    """Ranks of torch's launcher, which ends the others when one has ended."""

    def test_the_time_is_over(self, tmp_path: Path) -> None:
        """While all are at work: a line says so, where torch used to say only that SIGALRM had come."""
        with running("torchrun", Fault("slow"), tmp_path, seconds=20) as run:
            run.start().finish()
            lines = run.programs[0].lines
            assert run.programs[0].code == 1
            assert lines
            assert all("the run was ended after 20 s" in line and "in 'timing'" in line for line in lines)
            assert [line for line in run.left() if "torchelastic" not in line] == []

    def test_the_launcher_is_killed(self, tmp_path: Path) -> None:
        """Its ranks do not live on for the rest of their time."""
        with running("torchrun", Fault("slow"), tmp_path, seconds=200) as run:
            run.start()
            wait_until(lambda: len(run.marked()) == 3, "the ranks start")
            time.sleep(4)
            run.programs[0].process.kill()
            run.programs[0].process.wait(10)
            assert [line for line in run.left(15) if "torchelastic" not in line] == []


@needs_namespaces
class TestEmulated:
    """Ranks in network namespaces, with links that can fail."""

    @pytest.mark.parametrize("cut", [0, 2])
    def test_a_link_that_is_cut_is_named(self, cut: int, tmp_path: Path) -> None:
        """Of three ranks the one that nobody reaches, when the time is over."""
        with running("emulated", Fault("cut", cut, "timing"), tmp_path, ranks=3, seconds=15) as run:
            run.start().finish()
            assert f"rank {cut} cannot be reached over the network in 'timing'" in one_line(run)
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


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
