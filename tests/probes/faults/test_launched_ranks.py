"""Faults of ranks that somebody else starts, srun or torchrun: one line each, in time, and nothing left."""

import importlib.util
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from tests.probes.faults.runs import PLENTY_SECONDS, has_torch, one_line, running, state_of, wait_until
from tests.probes.faults.task import Fault

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found through Linux's /proc"),
]
LATE_SECONDS = 12.0  # calling the roll, telling each other, cleaning up, on a busy machine


class TestLaunched:
    """Ranks that somebody else starts, one program each."""

    def test_a_rank_that_is_killed_is_missed(self, tmp_path: Path) -> None:
        """Within seconds, by all others."""
        with running("launched", Fault.of("kill:1:timing"), tmp_path) as run:
            run.start().finish()
            assert "no answer from rank 1 in 'timing'; look at that rank's own log" in one_line(run)
            assert run.left() == []

    def test_a_rank_that_is_stopped_is_missed_when_the_time_is_over(
        self, enough_seconds: float, tmp_path: Path
    ) -> None:
        """It cannot be told from a slow one before."""
        with running("launched", Fault.of("stop:1:timing"), tmp_path, seconds=enough_seconds) as run:
            run.start()
            run.programs[0].finish(run.patience())
            assert "no answer from rank 1 in 'timing'" in one_line(run)

    @pytest.mark.parametrize(
        ("fault", "says"),
        [
            ("refuse:1:start", "rank 1 on {host} failed in 'start': this host has no NVML"),
            ("refuse:0:start", "rank 0 on {host} failed in 'start': this host has no NVML"),
            (
                "refuse:1:start of the process group",
                "rank 1 on {host} failed in 'start of the process group': ",
            ),
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

    def test_a_rank_that_hangs_ends_by_itself(self, enough_seconds: float, tmp_path: Path) -> None:
        """Soon after the time is over, with a line; the others have missed it."""
        with running("launched", Fault.of("hang:1:timing"), tmp_path, seconds=enough_seconds) as run:
            run.start().finish()
            assert "no answer from rank 1 in 'timing'" in one_line(run)
            assert (
                one_line(run, 1)
                == f"moeplan: rank 1 hangs in 'timing'; the run was ended after {enough_seconds:g} s"
            )
            assert run.left() == []

    def test_a_signal_is_heard_inside_a_collective(self, tmp_path: Path) -> None:
        """Rank 0 waits for one that is stopped, and no handler of Python runs: it ends all the same."""
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

    def test_the_time_is_over(self, enough_seconds: float, tmp_path: Path) -> None:
        """While all are at work: a line says so, where torch used to say only that SIGALRM had come."""
        with running("torchrun", Fault("slow"), tmp_path, seconds=enough_seconds) as run:
            run.start().finish()
            lines = run.programs[0].lines
            assert run.programs[0].code == 1
            assert lines
            assert all(
                f"the run was ended after {enough_seconds:g} s" in line and "in 'timing'" in line
                for line in lines
            )
            assert run.left() == []

    def test_the_launcher_is_killed(self, tmp_path: Path) -> None:
        """Its ranks end as soon as they have imported torch, not after the rest of their time."""
        with running("torchrun", Fault("slow"), tmp_path, seconds=200) as run:
            run.start()
            wait_until(lambda: sum(map(has_torch, run.marked())) == 3, "the ranks and torchrun import torch")
            run.programs[0].process.kill()
            run.programs[0].process.wait(10)
            assert run.left(PLENTY_SECONDS) == []
