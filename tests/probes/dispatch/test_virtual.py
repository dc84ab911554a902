"""Virtual ranks run the very dispatch that processes run: what is right passes, what is wrong is found."""

import importlib.util
import json
from dataclasses import replace

import numpy as np
import pytest

from probes.dispatch.job import DispatchJob, Fault, Side
from probes.dispatch.report import DispatchReport, judge
from probes.dispatch.run import Found, _seen, task
from tests.probes.dispatch.test_dispatch import even_shares, make_job

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def run_virtually(job: DispatchJob) -> DispatchReport:
    from probes.ranks.virtual import run_virtual

    return judge(Found(job, _seen(map(json.loads, run_virtual(task(job)))), (), 0, ()))


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
