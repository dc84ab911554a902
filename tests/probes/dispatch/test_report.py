"""The comparison of what ranks saw with the prediction.

Each check passes on the right account and fails on one wrong number.
"""

from dataclasses import replace
from typing import Any

import pytest

from probes.dispatch.checks import CHECKS
from probes.dispatch.prediction import predict
from probes.dispatch.report import judge
from probes.dispatch.run import Found
from probes.dispatch.seen import PHASES, Seen
from tests.probes.dispatch_jobs import make_job, seen_of

JOB = replace(make_job(), repeats=3, device="cpu")


def right_account() -> list[Seen]:
    """Ten assignments of each rank to each GPU, 144 bytes there and 128 back (worked out in
    test_dispatch_job).
    """
    return [
        seen_of(rank, "plan", {phase: [1.0 + rank, 9.0, 3.0 - rank] for phase in PHASES}, [])
        for rank in range(2)
    ]


def account(seen: list[Seen], *notes: str) -> Found:
    return Found(JOB, seen, ("a", "b"), 0, notes)


def test_the_right_account_passes() -> None:
    """All checks, and the note that a CPU is no GPU."""
    report = judge(account(right_account(), "a note"))
    assert report.ok
    assert [check.name for check in report.checks] == list(CHECKS)
    assert report.notes[0].startswith("ran on the CPU")
    assert report.bytes_GG["plan"].tolist() == predict(JOB, "plan", 0).dispatch_bytes_GG.tolist()
    assert judge(replace(account(right_account()), job=replace(JOB, device="cuda"))).notes == ()


def test_seconds_are_the_slowest_rank_then_the_median() -> None:
    """Ranks take (1, 9, 3) and (2, 9, 2) seconds: the slowest are (2, 9, 3), their median is 3."""
    assert judge(account(right_account())).seconds_L["plan"]["combine"].tolist() == [3.0]


@pytest.mark.parametrize(
    ("change", "check", "says"),
    [
        ({"wrong_sums": ["token 3"]}, "sums", "layer 4 (plan): token 3"),
        ({"misplaced": "slot 1"}, "holders", "layer 4 (plan): slot 1"),
        ({"distinct_tokens": 1}, "tokens", "layer 4 (plan): 10 of 10 tokens of rank 1 are the same vector"),
        (
            {"distinct_results": 1},
            "tokens",
            "layer 4 (plan): of 10 tokens of rank 1 only 1 came back different",
        ),
        (
            {"matrices": [[1, 4096, 0]]},
            "experts",
            "layer 4 (plan): the matrix of expert 1 on rank 1 has 4096 zeros of 4096 elements, not a third",
        ),
        (
            {"sent_bytes_G": [1440, 1441]},
            "bytes",
            "layer 4 (plan): dispatch, sent: rank 1 to rank 1 1,441 bytes, predicted 1,440",
        ),
        (
            {"received_bytes_G": [0, 1440]},
            "bytes",
            "layer 4 (plan): dispatch, received: rank 0 to rank 1 0 bytes, predicted 1,440",
        ),
        (
            {"sent_back_bytes_G": [1, 1280]},
            "bytes",
            "layer 4 (plan): combine, sent: rank 1 to rank 0 1 bytes, predicted 1,280",
        ),
        (
            {"received_back_bytes_G": [1, 1280]},
            "bytes",
            "layer 4 (plan): combine, received: rank 0 to rank 1 1 bytes, predicted 1,280",
        ),
    ],
)
def test_one_wrong_number_fails_its_check_alone(change: dict[str, Any], check: str, says: str) -> None:
    """The detail names layer, side, ranks and both values."""
    first, second = right_account()
    report = judge(account([first, replace(second, **change)]))
    assert {entry.name: entry.detail for entry in report.checks if not entry.ok} == {check: says}
    assert not report.ok


@pytest.mark.parametrize(("received", "times"), [([[0, 1, 10], [1, 1, 9]], 9), ([[0, 1, 10]], 0)])
def test_an_assignment_that_is_missing_is_missed_by_the_load_too(
    received: list[list[int]], times: int
) -> None:
    """Every token asks for both experts: one that does not is no draw of that load."""
    first, second = right_account()
    report = judge(account([first, replace(second, received=received)]))
    failed = {entry.name: entry.detail for entry in report.checks if not entry.ok}
    assert set(failed) == {"assignments", "load"}
    assert (
        failed["assignments"] == f"layer 4 (plan): rank 1 sent expert 1 to GPU 1 {times} times, predicted 10"
    )


def test_a_missing_account_is_never_a_success() -> None:
    """A rank whose results are not there cannot be right."""
    with pytest.raises(RuntimeError, match="incomplete"):
        judge(account(right_account()[:1]))
