"""Real runs: four processes that dispatch, compute and combine over gloo; and every fault.

A fault must end in one line and leave nothing behind.
"""

import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.base import BadInput
from probes.dispatch import run as dispatch
from probes.dispatch.job import DispatchJob, Fault, Side, save
from probes.dispatch.report import DispatchReport, judge
from probes.ranks.keep import END_SECONDS
from probes.ranks.party import RankBugError
from probes.ranks.resources import check_memory
from tests.places import ROOT

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def make_job(
    transport: str = "slot", gpus: int = 4, fault: Fault | None = None, timeout_seconds: float = 60.0
) -> DispatchJob:
    """8 experts in 12 slots against the contiguous 8, on two nodes; two layers of different load, top 3."""
    plan_LP = np.array([[0, 1, 2, 3, 4, 0, 5, 6, 1, 7, 2, 0], [7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 0]])
    default_LP = np.tile(np.arange(8), (2, 1))
    shares_LE = np.random.default_rng(0).lognormal(size=(2, 8))
    return DispatchJob(
        sides={
            "plan": Side(plan_LP, even_shares(plan_LP)),
            "default": Side(default_LP, even_shares(default_LP)),
        },
        layer_ids=(3, 7),
        experts=8,
        top_k=3,
        dispatch_width=256,
        shares_LE=shares_LE / shares_LE.sum(axis=1, keepdims=True),
        unit_G=np.arange(gpus) // (gpus // 2),
        transport=transport,
        tokens_per_rank=32,
        repeats=2,
        timeout_seconds=timeout_seconds,
        device="cpu",
        fault=fault,
    )


def even_shares(expert_LP: np.ndarray) -> np.ndarray:
    return np.stack([1 / np.bincount(expert_P)[expert_P][None, :] for expert_P in expert_LP])


@pytest.fixture
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Path":
    """Temporary files go below this folder, whose name is on every rank's command line.

    Checked by `assert_clean`.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def assert_clean(folder: Path) -> None:
    """No file is left, and no process that names the folder."""
    assert list(folder.iterdir()) == []
    assert processes_of(folder) == []


def processes_of(folder: Path) -> list[str]:
    lines = subprocess.run(
        ["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [line for line in lines if str(folder) in line]


def outcome(job: DispatchJob) -> DispatchReport:
    return judge(dispatch.run(job))


def failed(report: DispatchReport) -> dict[str, str]:
    return {check.name: check.detail for check in report.checks if not check.ok}


@needs_torch
@pytest.mark.parametrize("transport", ["slot", "rank", "node", "allgather"])
def test_four_ranks_agree_with_the_prediction(transport: str, nothing_left: Path) -> None:
    """Every token's sum, every assignment and every byte, for the plan and the default, with times for each
    layer and phase.
    """
    report = outcome(make_job(transport))
    assert report.ok, failed(report)
    for side in ("plan", "default"):
        assert (report.bytes_GG[side] == report.predicted_bytes_GG[side]).all()
        assert report.bytes_GG[side].sum() > 0
        for phase in ("dispatch", "compute", "combine"):
            assert (report.seconds_L[side][phase] > 0).all()
            assert len(report.seconds_L[side][phase]) == 2
    assert any("not the speed of GPUs" in note for note in report.notes)
    assert_clean(nothing_left)


@needs_torch
def test_an_expert_sent_to_the_wrong_gpu_is_caught(nothing_left: Path) -> None:
    """One assignment goes to a slot that holds another expert: the holder, the sum, the counts and the bytes
    all say so.
    """
    faults = failed(outcome(make_job(gpus=2, fault=Fault(1, "wrong-slot"))))
    assert set(faults) == {"sums", "holders", "assignments", "bytes"}
    assert re.match(
        r"layer 3 \(plan\): rank 1 sent expert \d to slot \d+ of GPU \d, which holds expert \d",
        faults["holders"],
    )
    assert_clean(nothing_left)


@needs_torch
def test_a_wrong_result_is_caught(nothing_left: Path) -> None:
    """One element of one expert's result is off by one: only the sums can see it, and they do."""
    faults = failed(outcome(make_job("node", gpus=2, fault=Fault(1, "corrupt"))))
    assert set(faults) == {"sums"}
    assert "1 of 32 tokens of rank" in faults["sums"]


@needs_torch
@pytest.mark.parametrize(
    ("kind", "timeout_seconds", "says"),
    [
        ("exit", 60, r"^rank 1: killed \(SIGKILL\) in 'check of layer 3 \(plan\)'"),
        ("hang", 60, r"^rank 1: stopped \(SIGSTOP\) in 'check of layer 3 \(plan\)'"),
        ("slow", 20, r"^rank 1: busy in 'check of layer 3 \(plan\)'; the run was ended after 20 s"),
    ],
)
def test_a_rank_that_stops_is_named_in_time(
    kind: str, timeout_seconds: float, says: str, nothing_left: Path
) -> None:
    """Killed, stopped and slow: one line with rank and phase, within the timeout and the seconds to clean up,
    and no process left.
    """
    start = time.monotonic()
    with pytest.raises(dispatch.RunFailed, match=says) as caught:
        outcome(make_job(gpus=2, fault=Fault(1, kind), timeout_seconds=timeout_seconds))
    assert time.monotonic() - start < timeout_seconds + END_SECONDS
    assert "\n" not in str(caught.value)
    assert_clean(nothing_left)


@needs_torch
def test_a_bug_of_a_rank_keeps_its_traceback(nothing_left: Path) -> None:
    """What is our own fault is no BadInput."""
    with pytest.raises(RankBugError, match=r"(?s)rank 1 failed:.*ArithmeticError: raised on purpose"):
        outcome(make_job(gpus=2, fault=Fault(1, "raise")))
    assert_clean(nothing_left)


PROGRAM = """
import pathlib, sys, tempfile
import torch.distributed  # on a busy machine it takes longer than a test of the time limit has
from probes.dispatch import run as dispatch
from probes.dispatch import job as dispatch_job
from probes.dispatch.report import judge
tempfile.tempdir = sys.argv[2]
try:
    report = judge(dispatch.run(dispatch_job.load(pathlib.Path(sys.argv[1]))))
except KeyboardInterrupt:
    sys.exit(130)
except dispatch.BadInput as error:
    print("line:", error, flush=True)
    sys.exit(2)
if report.rank == 0:
    print(report.ok, report.notes)
"""


@needs_torch
def test_an_interrupted_run_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C while a rank is slow: ranks, launcher and files are gone."""
    inner = tmp_path / "inner"
    inner.mkdir()
    save(make_job(gpus=2, fault=Fault(0, "slow")), tmp_path / "given.npz")
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "given.npz"), str(inner)], cwd=ROOT
    )
    deadline = time.monotonic() + 40
    while not any(b"check of" in file.read_bytes() for file in inner.glob("*/rank-0")):
        assert time.monotonic() < deadline, "the ranks did not start"
        time.sleep(0.1)
    program.send_signal(signal.SIGINT)
    assert program.wait(timeout=20) == 130
    assert_clean(inner)


def start_rank(folder: Path, *before: str, **environment: str) -> "subprocess.Popen[str]":
    """The program as a launcher on a cluster starts it."""
    command = [sys.executable, *before, str(folder / "program.py"), str(folder / "given.npz"), str(folder)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder), **environment},
    )


@needs_torch
def test_under_torchrun_each_process_is_a_rank(tmp_path: Path) -> None:
    """Rank 0 alone speaks."""
    save(make_job("node", gpus=2), tmp_path / "given.npz")
    (tmp_path / "program.py").write_text(PROGRAM)
    torchrun = start_rank(
        tmp_path,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--local-addr=127.0.0.1",
        "--nproc-per-node=2",
    )
    out, err = torchrun.communicate(timeout=60)
    assert torchrun.returncode == 0, err
    assert out.startswith("True")
    assert len(out.splitlines()) == 1


@needs_torch
def test_a_stopped_rank_that_others_launched_is_named(tmp_path: Path) -> None:
    """Two ranks started one by one, as srun does: the one that is left says which does not answer and where
    it was, and ends by itself.
    """
    save(make_job(gpus=2, fault=Fault(1, "hang"), timeout_seconds=10.0), tmp_path / "given.npz")
    (tmp_path / "program.py").write_text(PROGRAM)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    ranks = [
        start_rank(tmp_path, RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        for rank in range(2)
    ]
    try:
        out, err = ranks[0].communicate(timeout=60)
        assert ranks[0].returncode == 2, err
        assert out.startswith("line: no answer from rank 1 in 'check of layer 3 (plan)'")
        assert len(out.splitlines()) == 1
    finally:
        ranks[1].kill()
        ranks[1].communicate(timeout=10)


@needs_torch
def test_a_launched_rank_without_its_group_is_told_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """RANK alone, and a world of the wrong size."""
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "3")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(BadInput, match="RANK is set but MASTER_ADDR is not"):
        outcome(make_job())
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "29555")
    with pytest.raises(BadInput, match="the plan is for 4 GPUs and 3 ranks were started"):
        outcome(make_job())


@needs_torch
def test_gpus_are_used_where_there_is_one_for_each_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four ranks on a machine that claims four GPUs take them, at the model's own width; on three they do
    not, and say so if GPUs were asked for.
    """
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    chosen = dispatch.with_device(replace(make_job(), device="auto"))
    assert (chosen.device, chosen.hidden) == ("cuda", 256)
    assert dispatch.with_device(make_job()).device == "cpu"
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    chosen = dispatch.with_device(replace(make_job(), device="auto"))
    assert (chosen.device, chosen.hidden) == ("cpu", 64)
    with pytest.raises(BadInput, match="4 ranks on this machine need as many GPUs, torch sees 3"):
        dispatch.with_device(replace(make_job(), device="cuda"))


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that says what to install."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match="validate needs torch: pip install torch"):
        outcome(make_job())


def test_too_many_ranks_for_the_memory_are_refused() -> None:
    """72 ranks do not fit into 8 GB; 32 do."""
    remedy = "at most 32 GPUs, or start validate on the cluster with torchrun"
    with pytest.raises(BadInput, match=rf"72 ranks need about 18\.0 GB.*{remedy}"):
        check_memory(72, 8e9)
    check_memory(32, 8e9)
