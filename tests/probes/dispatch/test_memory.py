"""What a rank needs of its GPU is known before it is asked for, and a refusal says how much is free."""

from dataclasses import replace

import numpy as np
import pytest

from planner.base import BadInput
from probes.dispatch.gemm.shapes import ExpertShape
from probes.dispatch.job import Side
from probes.dispatch.memory import check_fits, most_arrivals, needed
from tests.probes.dispatch.test_dispatch import make_job


def test_a_rank_with_busier_slots_needs_more() -> None:
    """All of the load is on expert 0; GPUs 0, 1 and 3 hold it."""
    job = make_job("slot")
    plan = job.sides["plan"]
    one = Side(plan.expert_LP[:1], plan.share_LSP[:1])
    job = replace(job, shares_LE=np.eye(8)[:1], layer_ids=(3,), sides={"plan": one})
    first = one.expert_LP[0].reshape(4, 3)
    wanted = [needed(job, rank).bytes_of["records"] for rank in range(4)]
    assert [(0 in slots) for slots in first.tolist()] == [True, True, False, True]
    assert wanted[2] < wanted[0] == pytest.approx(wanted[1]) == pytest.approx(wanted[3])


def test_no_more_arrives_than_there_is() -> None:
    """A token comes once to a GPU; under allgather all of them do."""
    job = make_job("allgather")
    assert most_arrivals(job, job.sides["plan"], 0) == 4 * 32
    job = make_job("rank")
    assert 0 < most_arrivals(job, job.sides["plan"], 0) <= 4 * 32


def test_experts_that_are_timed_count_by_their_dtype() -> None:
    """Those of both sides together; of virtual ranks, which send narrower tokens, one after the other."""
    shape = ExpertShape(256, 512, 3, "fp8", 0.0)
    job = replace(make_job(), expert=shape, hidden=256, device="cuda")
    matrices = 3 * 256 * 512
    assert needed(job, 0).bytes_of["timed weights"] == (3 + 2) * matrices
    assert needed(replace(job, expert=replace(shape, weight_dtype="bf16")), 0).bytes_of["timed weights"] == (
        10 * matrices
    )
    virtual = replace(job, virtual=True, hidden=64)
    assert needed(virtual, 0).bytes_of["timed weights"] == 3 * matrices
    assert needed(virtual, 0).bytes_of["records"] > needed(replace(job, hidden=64), 0).bytes_of["records"]


def test_a_gpu_that_is_too_small_is_one_line() -> None:
    """Rank, bytes needed, bytes free, and what to do."""
    wanted = needed(replace(make_job(), hidden=7168, device="cuda"), 2)
    check_fits(wanted, wanted.total_bytes, 2)
    line = r"^rank 2 needs about 2\.\d+ GB of its GPU's memory \(experts .*\), 1 GB are free: take a smaller"
    with pytest.raises(BadInput, match=line):
        check_fits(wanted, 1e9, 2)
