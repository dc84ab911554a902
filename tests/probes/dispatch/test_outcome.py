"""The outcome of a run in words, tables and JSON: the answer first, and every figure behind it."""

import json
from dataclasses import replace
from io import StringIO

import numpy as np
from rich.console import Console

from planner.report.validation import validation_report
from planner.topology import Topology
from probes.dispatch.difference import Difference
from probes.dispatch.outcome import Outcome, Scope, SentTraffic
from probes.dispatch.outcome_dict import outcome_to_dict
from probes.dispatch.report import judge
from probes.dispatch.run import Found
from probes.dispatch.seen import PHASES
from probes.dispatch.timed import Timed
from probes.dispatch.verdict import LawError, judge_speed
from probes.dispatch.verdict.words import how_to_check
from tests.probes.dispatch.verdict.runs import Machine, make_timed, make_topology
from tests.probes.dispatch_jobs import make_job, seen_of

TOLD = make_topology(2, 1)
SENT = SentTraffic("drawn", "tokens drawn", Difference(4, 1, 0.5, 0.4, 1.2, 1.1))
SCOPE = Scope(10, 64, 3, 0, "slot", "bf16", "bf16", SENT)
LAW = dict.fromkeys(PHASES, LawError(0.10, "stated"))


def found(wrong: str = "") -> Found:
    """What two ranks saw of the smallest job, run under two sides."""
    job = make_job()
    job = replace(
        job, sides={"plan": job.sides["plan"], "default": job.sides["plan"]}, repeats=3, device="cpu"
    )
    seen = [
        seen_of(
            rank,
            side,
            {phase: [0.1, 0.2, 0.3] for phase in PHASES},
            [wrong] if wrong and rank == 0 and side == "plan" else [],
        )
        for rank in range(2)
        for side in job.sides
    ]
    return Found(job, seen, ("host0", "host1"), 0, ())


def outcome(
    timed: list[Timed], *, judged: bool = True, wrong: str = "", topology: Topology = TOLD
) -> Outcome:
    verdict = judge_speed(timed, topology, LAW) if judged else None
    return Outcome(judge(found(wrong)), SCOPE, topology, tuple(timed), verdict, "" if judged else "no links")


def text(shown: Outcome, *, details: bool = False) -> str:
    console = Console(file=StringIO(), width=200)
    console.print(validation_report(shown, details=details))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_the_answer_stands_first() -> None:
    """The promise kept; then phases, gains, the slowest rank, the tolerance, and what was checked."""
    shown = text(outcome(make_timed(TOLD, Machine(TOLD))))
    assert shown.startswith("The plan keeps its promise: dispatch 0.")
    for part in (
        "by bytes sent",
        "Plan / other side",
        "Slowest: rank ",
        "Tolerance of combine: ",
        "ok     sums: ",
    ):
        assert part in shown
    assert "10 tokens a rank, 64 wide; 3 repeats" in shown


def test_a_failure_says_why_and_what_to_try() -> None:
    """A NIC at a fifth of its rate: no, with its name and a test that proves it."""
    failed = outcome(make_timed(TOLD, Machine(TOLD, {"node1/nic0": 0.2}), layers=6))
    assert not failed.ok
    assert failed.failed == [failed.answer]
    assert failed.answer.startswith("The prediction fails: ")
    assert failed.verdict is not None
    assert failed.verdict.cause is not None
    assert f"To prove the cause: {how_to_check(failed.verdict.cause, TOLD)}" in text(failed)


def test_wrong_traffic_comes_before_speed() -> None:
    """However fast it was."""
    wrong = outcome(make_timed(TOLD, Machine(TOLD), layers=2), wrong="token 3 is wrong")
    assert not wrong.ok
    assert wrong.answer == "The traffic is wrong: check 'sums' failed: layer 4 (plan): token 3 is wrong"


def test_where_speed_says_nothing_the_traffic_does() -> None:
    """No error of a prediction that is of another machine."""
    shown = outcome(make_timed(TOLD, Machine(TOLD), layers=2), judged=False)
    assert shown.ok
    assert shown.answer == "The traffic is right. Speed not judged: no links"
    assert "-5 %" not in text(shown, details=True)
    assert outcome_to_dict(shown)["verdict"] is None


def test_an_emulated_run_says_its_scale() -> None:
    """In the text and in the JSON."""
    shown = outcome(make_timed(TOLD, Machine(TOLD), layers=2))
    scaled = replace(shown, scope=replace(SCOPE, emulated_scale=1250.0))
    assert "emulated, with rates divided by 1250; 10 tokens a rank" in text(scaled)
    assert "emulated" not in text(shown)
    assert outcome_to_dict(scaled)["emulated_scale"] == 1250.0


def test_details_show_each_layer() -> None:
    """With what it was predicted to wait for."""
    shown = outcome(make_timed(TOLD, Machine(TOLD), layers=3))
    assert "predicted to wait for" not in text(shown)
    assert text(shown, details=True).count("node0/nic0/") >= 3


def test_the_json_holds_every_rank_and_repeat() -> None:
    """And is plain JSON: nothing in it is no number."""
    shown = outcome(make_timed(TOLD, Machine(TOLD, {"node1/nic0": 0.2}), layers=6, repeats=4))
    value = json.loads(json.dumps(outcome_to_dict(shown), allow_nan=False))
    assert value["schema"] == "moeplan/validation/1"
    assert (value["tokens"], value["width"], value["hosts"]) == (10, 64, ["host0", "host1"])
    assert np.array(value["timed"][0]["phases"]["dispatch"]["seconds"]).shape == (2, 4)
    assert len(value["timed"]) == 12
    assert value["verdict"]["state"] == "prediction"
    assert value["verdict"]["tolerances"]["dispatch"]["law"] == 0.10
    assert value["verdict"]["cause"]["likeliest"]["kind"]
    assert value["timed"][0]["phases"]["combine"]["bottleneck"]["named"].startswith("node")


def test_one_repeat_gives_no_number_that_is_none() -> None:
    """Its noise is not known: nothing is told, and the JSON says null."""
    shown = outcome(make_timed(TOLD, Machine(TOLD), layers=2, repeats=1))
    assert shown.verdict is not None
    assert shown.verdict.state == "undecided"
    value = json.loads(json.dumps(outcome_to_dict(shown), allow_nan=False))
    assert value["verdict"]["tolerances"]["dispatch"]["noise"] is None
    assert text(shown)
