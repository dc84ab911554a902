"""Virtual ranks run the very dispatch that processes run: what is right passes, what is wrong is found."""

import importlib.util
from dataclasses import replace

import numpy as np
import pytest

from planner.base import BadInput
from probes.dispatch.job import DispatchJob, Fault, Side
from probes.dispatch.report import DispatchReport, judge
from probes.dispatch.run import run
from tests.probes.dispatch.test_dispatch import even_shares, make_job

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def run_virtually(job: DispatchJob) -> DispatchReport:
    return judge(run(replace(job, virtual=True)))


@pytest.mark.parametrize("transport", ["slot", "rank", "node", "allgather"])
def test_every_transport_holds(transport: str) -> None:
    """Tokens, assignments and bytes, as they do between processes."""
    report = run_virtually(make_job(transport))
    assert report.ok, [check.detail for check in report.checks]
    np.testing.assert_array_equal(report.bytes_GG["plan"], report.predicted_bytes_GG["plan"])


@pytest.mark.parametrize(("kind", "check"), [("corrupt", "sums"), ("wrong-slot", "assignments")])
def test_what_is_wrong_is_found(kind: str, check: str) -> None:
    report = run_virtually(make_job(fault=Fault(rank=1, kind=kind)))
    assert check in [found.name for found in report.checks if not found.ok]


def test_more_gpus_than_a_machine_has_memory_for_processes() -> None:
    """64 ranks of 8 nodes; as processes they would take 16 GB."""
    slots_P = np.arange(128) % 96
    job = make_job("node")
    job = replace(
        job,
        sides={"plan": Side(slots_P[None], even_shares(slots_P[None]))},
        layer_ids=(3,),
        experts=96,
        shares_LE=np.full((1, 96), 1 / 96),
        unit_G=np.arange(64) // 8,
        tokens_per_rank=8,
        repeats=1,
    )
    report = run_virtually(job)
    assert report.ok, [check.detail for check in report.checks]
    assert report.bytes_GG["plan"].shape == (64, 64)


def test_compute_alone_is_timed() -> None:
    """Of every rank, for every repeat; what exchanges in memory take means nothing, and it is said."""
    report = run_virtually(make_job())
    assert report.timed_phases == ("compute",)
    cell = report.cells["plan"][0]
    assert cell.seconds_GN("compute").shape == (4, 2)
    assert (cell.seconds_GN("compute") > 0).all()
    assert np.isnan(cell.seconds_GN("dispatch")).all()
    assert any("dispatch and combine were not timed" in note for note in report.notes)


def test_a_launcher_starts_no_virtual_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(BadInput, match="--virtual plays all ranks in one process"):
        run(replace(make_job(), virtual=True))
