"""The job and its prediction, without any process."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.base import BadInput
from planner.cost import bytes_of_messages
from planner.problem import TRANSPORTS, Workload
from planner.replica import CHOICES
from probes.dispatch.job import Fault, Side, load, save
from probes.dispatch.prediction import predict
from tests.probes.dispatch_jobs import make_job


@pytest.mark.parametrize(("transport", "record_bytes"), [("slot", 128 + 16), ("rank", 128 + 4 + 12 * 2)])
def test_prediction_by_hand(transport: str, record_bytes: int) -> None:
    """Ten tokens to each GPU: 64 bf16 elements and what the kernels send beside them; results come back."""
    prediction = predict(make_job(transport), "plan", 0)
    assert prediction.dispatch_bytes_GG.tolist() == [[10 * record_bytes] * 2] * 2
    back = {"slot": 128, "rank": 128 + 4 + 4 * 2}[transport]
    assert prediction.combine_bytes_GG.tolist() == [[10 * back] * 2] * 2
    assert prediction.received_SGE.tolist() == [[[10, 0], [0, 10]]] * 2


def test_prediction_of_two_hops_by_hand() -> None:
    """One GPU a node: the first hop goes to both, and the second stays where it is. 128 + 8 + 8 * 2 bytes
    are padded to 160.
    """
    there_GG = predict(make_job("node"), "plan", 0).dispatch_bytes_GG
    assert there_GG.tolist() == [[10 * 160 * 3, 10 * 160], [10 * 160, 10 * 160 * 3]]


def test_prediction_of_a_ring_by_hand() -> None:
    """Each GPU passes its ten tokens to the other, which keeps them: one copy over the link."""
    there_GG = predict(make_job("allgather"), "plan", 0).dispatch_bytes_GG
    assert there_GG.tolist() == [[10 * 144 * 2, 10 * 144], [10 * 144, 10 * 144 * 2]]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_records_have_the_bytes_of_the_models_messages(transport: str, dtype: str) -> None:
    """The run sends what the cost model counts, at the width of the run."""
    job = replace(make_job(transport), dispatch_dtype=dtype, combine_dtype=dtype, hidden=7168)
    workload = Workload(transport=transport, dispatch_dtype=dtype, combine_dtype=dtype)
    assert job.record_bytes == bytes_of_messages(workload, 7168, 2)


def test_every_side_gets_the_same_tokens_and_the_seed_decides() -> None:
    """Tokens depend on seed, layer and source alone; the sides' slots hold just those experts."""
    given = make_job()
    turned = Side(np.array([[1, 0]]), np.ones((1, 1, 2)))
    job = replace(given, sides={**given.sides, "default": turned}, top_k=1)
    experts_TK = job.experts_TK(0, 1)
    for side in ("plan", "default"):
        assert (job.sides[side].expert_LP[0][job.slots_TK(side, 0, 1)] == experts_TK).all()
    assert (experts_TK == job.experts_TK(0, 1)).all()
    assert (experts_TK != replace(job, seed=1).experts_TK(0, 1)).any()


@pytest.mark.parametrize("rule", CHOICES)
def test_an_engine_that_makes_no_draw_picks_for_itself(rule: str) -> None:
    """The rule's own slots for exactly these tokens on that rank; another rule draws, by its shares."""
    expert_P, shares = np.array([0, 1, 0, 1]), np.full((1, 1, 4), 0.5)
    sides = {"plan": Side(expert_P[None], shares, rule), "default": Side(expert_P[None], shares, "even")}
    job = replace(make_job(), sides=sides)
    for source in (0, 1):
        assert (
            job.slots_TK("plan", 0, source) == CHOICES[rule](job.experts_TK(0, source), expert_P, source, 2)
        ).all()
    assert (job.slots_TK("plan", 0, 1) != job.slots_TK("default", 0, 1)).any()


def test_a_trace_is_used_where_there_is_one() -> None:
    """Only rows of the trace are sent."""
    job = replace(make_job(), trace_LRK=np.array([[[1, 0]]]))
    assert job.experts_TK(0, 0).tolist() == [[1, 0]] * 10


def test_a_job_survives_its_file(tmp_path: Path) -> None:
    """Arrays, numbers, tuples and the fault come back as they went."""
    job = replace(make_job(), fault=Fault(1, "exit"), trace_LRK=np.array([[[1, 0]]]))
    save(job, tmp_path / "job.npz")
    back = load(tmp_path / "job.npz")
    assert list(back.sides) == list(job.sides)
    for side in fields(Side):
        assert np.array_equal(getattr(back.sides["plan"], side.name), getattr(job.sides["plan"], side.name))
    for field in fields(job):
        if field.name == "sides":
            continue
        assert np.array_equal(getattr(back, field.name), getattr(job, field.name)), field.name


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"top_k": 3}, "top_k is 3; validate can run 1 to 2"),
        ({"repeats": 0}, "repeats is 0"),
        ({"hidden": 0}, "hidden is 0"),
        ({"timeout_seconds": float("nan")}, "the timeout is nan s"),
        ({"transport": "pigeon"}, "transport 'pigeon' is unknown"),
        ({"device": "tpu"}, "device 'tpu' is none of"),
    ],
)
def test_bad_values_are_refused_in_one_line(change: dict[str, Any], says: str) -> None:
    """Each names the value."""
    with pytest.raises(BadInput, match=says):
        replace(make_job(), **change)


def test_arrays_that_do_not_fit_are_our_fault() -> None:
    """Three slots do not divide over two GPUs."""
    with pytest.raises(ValueError, match="do not fit 1 layers on 2 GPUs"):
        replace(make_job(), sides={"plan": Side(np.array([[0, 1, 0]]), np.ones((1, 1, 3)))})
