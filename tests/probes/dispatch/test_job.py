"""The job and its prediction, without any process."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.base import BadInput
from planner.replica import CHOICES
from probes.dispatch.job import LARGEST_TOP_K, Fault, load, save
from probes.dispatch.prediction import predict
from tests.probes.dispatch_jobs import make_job


@pytest.mark.parametrize(
    ("transport", "record_bytes"), [("slot", 128 + 4 * 5), ("rank", 128 + 4 * 8), ("allgather", 128 + 4 * 8)]
)
def test_prediction_by_hand(transport: str, record_bytes: int) -> None:
    """Ten tokens to each GPU: 64 bf16 elements, two int32 of origin and three for each assignment; back come
    the elements alone.
    """
    prediction = predict(make_job(transport), "plan", 0)
    assert prediction.dispatch_bytes_GG.tolist() == [[10 * record_bytes] * 2] * 2
    assert prediction.combine_bytes_GG.tolist() == [[1280] * 2] * 2
    assert prediction.received_SGE.tolist() == [[[10, 0], [0, 10]]] * 2


def test_prediction_of_two_hops_by_hand() -> None:
    """One GPU a node: the first hop goes to both, and the second stays where it is."""
    record_bytes = 128 + 4 * 8
    assert predict(make_job("node"), "plan", 0).dispatch_bytes_GG.tolist() == [
        [10 * record_bytes * 3, 10 * record_bytes],
        [10 * record_bytes, 10 * record_bytes * 3],
    ]


def test_plan_and_baseline_get_the_same_tokens_and_the_seed_decides() -> None:
    """Tokens depend on seed, layer and source alone; the sides' slots hold just those experts."""
    job = replace(
        make_job(), baseline_expert_LP=np.array([[1, 0]]), baseline_share_LSP=np.ones((1, 1, 2)), top_k=1
    )
    experts_TK = job.experts_TK(0, 1)
    for side in ("plan", "baseline"):
        assert (job.sides[side].expert_LP[0][job.slots_TK(side, 0, 1)] == experts_TK).all()
    assert (experts_TK == job.experts_TK(0, 1)).all()
    assert (experts_TK != replace(job, seed=1).experts_TK(0, 1)).any()


@pytest.mark.parametrize("rule", CHOICES)
def test_an_engine_that_makes_no_draw_picks_for_itself(rule: str) -> None:
    """The rule's own slots for exactly these tokens on that rank; another rule draws, by its shares."""
    expert_P = np.array([0, 1, 0, 1])
    job = replace(make_job(), expert_LP=expert_P[None], share_LSP=np.full((1, 1, 4), 0.5), replica_rule=rule)
    for source in (0, 1):
        assert (
            job.slots_TK("plan", 0, source) == CHOICES[rule](job.experts_TK(0, source), expert_P, source, 2)
        ).all()
    assert (job.slots_TK("plan", 0, 1) != replace(job, replica_rule="even").slots_TK("plan", 0, 1)).any()


def test_a_trace_is_used_where_there_is_one() -> None:
    """Only rows of the trace are sent."""
    job = replace(make_job(), trace_LRK=np.array([[[1, 0]]]))
    assert job.experts_TK(0, 0).tolist() == [[1, 0]] * 10


def test_a_job_survives_its_file(tmp_path: Path) -> None:
    """Arrays, numbers, tuples and the fault come back as they went."""
    job = replace(make_job(), fault=Fault(1, "exit"), trace_LRK=np.array([[[1, 0]]]))
    save(job, tmp_path / "job.npz")
    back = load(tmp_path / "job.npz")
    for field in fields(job):
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
        replace(make_job(), expert_LP=np.array([[0, 1, 0]]))


def test_sums_stay_exact_in_bf16() -> None:
    """The most experts a token may have, each with the largest result and gate weight, stay within bf16's
    exact integers.
    """
    torch = pytest.importorskip("torch")
    from probes.dispatch.batch import RESULT_VALUES

    largest = LARGEST_TOP_K * (RESULT_VALUES - 1) * 3
    assert all(int(torch.tensor(float(number)).to(torch.bfloat16)) == number for number in range(largest + 1))
