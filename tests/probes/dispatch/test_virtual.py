"""Virtual ranks run the very dispatch that processes run: what is right passes, what is wrong is found."""

import importlib.util
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from planner.base import BadInput
from probes.dispatch.drawn import draw_by_inclusion
from probes.dispatch.job import DispatchJob, Fault, Side
from probes.dispatch.report import DispatchReport, judge
from probes.dispatch.run import run
from tests.probes.dispatch.test_dispatch import even_shares, make_job

if TYPE_CHECKING:  # they import torch
    from probes.dispatch.batch import Tokens
    from probes.ranks.wire import Wire

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
        timeout_seconds=300.0,
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


def test_the_first_replica_for_every_token_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prediction counts with the same wrong picks, so assignments and bytes agree; the shares do not."""

    def first_slots_TK(self: DispatchJob, side_name: str, row: int, source: int) -> np.ndarray:
        expert_P = self.sides[side_name].expert_LP[row]
        first_E = np.array([np.flatnonzero(expert_P == expert)[0] for expert in range(self.experts)])
        return first_E[self.experts_TK(row, source)]

    monkeypatch.setattr(DispatchJob, "slots_TK", first_slots_TK)
    assert failed_of(make_job()) == {"replicas"}


def test_an_expert_of_zeros_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference is made with the same zeros, so every sum is right."""
    from probes.dispatch import batch

    matrix = batch.expert_matrix
    monkeypatch.setattr(batch, "expert_matrix", lambda *given: 0 * matrix(*given))
    assert failed_of(make_job()) == {"experts", "tokens"}


def test_tokens_that_are_all_alike_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any record could stand for any other, and every sum would still be right."""
    from probes.dispatch import batch

    make_tokens = batch.make_tokens

    def same(job: DispatchJob, wire: "Wire", row: int) -> "Tokens":
        tokens = make_tokens(job, wire, row)
        alike = {
            name: getattr(tokens, name)[:1].expand_as(getattr(tokens, name)).contiguous()
            for name in ("vectors_TH", "reference_TH", "experts_TK", "gates_TK")
        }
        return replace(tokens, **alike)

    monkeypatch.setattr("probes.dispatch.rank.make_tokens", same)
    assert "tokens" in failed_of(make_job())


def test_tokens_of_another_load_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """All experts asked for alike, where the plan's load is skewed: prediction and ranks draw the same."""
    even_E = np.full(8, 3 / 8)
    monkeypatch.setattr(
        "probes.dispatch.job.draw_by_inclusion", lambda _, *rest: draw_by_inclusion(even_E, *rest)
    )
    assert failed_of(replace(make_job(), tokens_per_rank=256)) == {"load"}


def failed_of(job: DispatchJob) -> set[str]:
    return {check.name for check in run_virtually(job).checks if not check.ok}
