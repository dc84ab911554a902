"""The verdict on runs of a machine made for the purpose: sound ones pass, and what is wrong is named.

The machine shares its links among flows step by step; it is not built from the law that is judged. Each fault
costs more than the tolerance; the figures of many seeds are in docs/validating.md.
"""

import re
from dataclasses import replace

import pytest

from probes.dispatch.seen import PHASES
from probes.dispatch.timed import Timed
from probes.dispatch.verdict import LawError, Verdict, judge_speed
from probes.dispatch.verdict.words import how_to_check, sentence
from tests.probes.dispatch.verdict.rates import noisy
from tests.probes.dispatch.verdict.runs import Machine, make_timed, make_topology

TOLD = make_topology()
LAW = dict.fromkeys(PHASES, LawError(0.10, "stated"))


def judged(timed: list[Timed], **given: float) -> Verdict:
    return judge_speed(timed, TOLD, LAW, **given)  # type: ignore[arg-type]


def test_a_sound_machine_keeps_the_promise() -> None:
    """The law is 5 % low and the times scatter by 3 %: the verdict is for the plan, and names no cause."""
    verdict = judged(make_timed(TOLD, Machine(TOLD)))
    assert (verdict.state, verdict.ok, verdict.cause) == ("kept", True, None)
    said = (
        r"The plan keeps its promise: dispatch 0\.\d\d of the default, promised 0\.\d\d \(tolerance 0\.\d\d\)"
    )
    assert re.fullmatch(said, sentence(verdict, TOLD))
    assert all(-0.09 < one.bias < 0 for one in verdict.phases)
    assert all(one.wait is not None and one.wait.agrees for one in verdict.layers)


def test_the_tolerance_says_what_it_is_made_of() -> None:
    """The law's own error and the noise; what a person asks for takes their place."""
    timed = make_timed(TOLD, Machine(TOLD), layers=2)
    tolerance = judged(timed).tolerances["dispatch"]
    assert tolerance.share == pytest.approx(0.10 + tolerance.noise)
    assert "10.0 % the law (stated) + " in tolerance.reason
    assert "noise of 5 repeats" in tolerance.reason
    strict = judged(timed, asked=0.001)
    assert strict.tolerances["dispatch"].reason == "0.1 %, as asked"
    assert strict.state == "prediction"


def test_false_alarms_are_rare() -> None:
    """Of 30 runs of a sound machine, none is called anything but kept."""
    clean = make_timed(TOLD, Machine(TOLD, noise=0.0))
    states = [judged(noisy(clean, seed, 0.04)).state for seed in range(30)]
    assert states.count("kept") == 30


@pytest.mark.parametrize(
    ("machine", "kind", "what", "share"),
    [
        (Machine(TOLD, {"node1/nic0": 0.25}), "link", "node1/nic0", 0.25),
        (Machine(TOLD, {"node2/nic1": 0.5}), "link", "node2/nic1", 0.5),
        (Machine(TOLD, busy={3: 3.0}), "rank", "rank 3", 0.33),
        (Machine(TOLD, {"nic": 0.6}), "tier", "nic", 0.6),
    ],
)
def test_what_is_slow_is_named_with_its_share(machine: Machine, kind: str, what: str, share: float) -> None:
    """One NIC at a quarter or a half, one rank whose host is busy, all NICs at 60 %: the verdict is no, the
    slow part is named first, and its share of the rate is right within the law's own error.
    """
    verdict = judged(make_timed(TOLD, machine))
    assert verdict.state == "prediction"
    assert verdict.cause is not None
    best = verdict.cause.best
    assert (best.suspect.kind, best.suspect.what) == (kind, what)
    assert best.x == pytest.approx(share, rel=0.15)
    assert verdict.cause.explains
    assert what in sentence(verdict, TOLD)
    assert how_to_check(verdict.cause, TOLD)


def test_the_slow_nic_is_what_is_waited_for() -> None:
    """The prediction named another resource in each layer, and the times do not agree with it."""
    verdict = judged(make_timed(TOLD, Machine(TOLD, {"node1/nic0": 0.25})))
    assert verdict.waited_for.startswith("node1/nic0/")
    assert TOLD.gpus[verdict.slowest_rank].node == 1
    assert not any(one.wait is not None and one.wait.agrees for one in verdict.layers)
    assert "ib_write_bw" in how_to_check(verdict.cause, TOLD) if verdict.cause else False


def test_uplinks_nobody_told_of_are_found() -> None:
    """Leaves of two nodes at 2:1 below a fabric that was told to be flat, or to be 1:1."""
    machine = Machine(make_topology(oversubscription=2.0))
    flat = judged(make_timed(TOLD, machine, skew=0.1))
    assert flat.cause is not None
    assert (flat.cause.best.suspect.kind, flat.cause.best.suspect.what) == ("uplinks", "2 nodes")
    assert flat.waited_for == ""
    told = make_topology(oversubscription=1.0)
    verdict = judge_speed(make_timed(told, machine, skew=0.1), told, LAW)
    assert verdict.cause is not None
    assert (verdict.cause.best.suspect.kind, verdict.cause.best.suspect.what) == ("tier", "leaf")
    assert "leaf uplinks nearer 2" in sentence(verdict, told)
    assert verdict.waited_for.startswith("leaf")


def test_a_wrong_rank_order_is_found() -> None:
    """Two ranks swapped between nodes, or all dealt over the nodes in turn, where most traffic is inside."""
    swapped = judged(make_timed(TOLD, Machine(TOLD, place_G=[0, 2, 1, 3, 4, 5, 6, 7]), inside=4.0))
    in_turn = judged(make_timed(TOLD, Machine(TOLD, place_G=[0, 2, 4, 6, 1, 3, 5, 7]), inside=4.0))
    assert swapped.cause is not None
    assert swapped.cause.best.suspect.kind == "order"
    assert in_turn.cause is not None
    assert in_turn.cause.best.suspect.what == "ranks dealt over the nodes in turn"
    # on equal nodes a swap of 1 and 2 sends what one of 0 and 3 does, seen from the other node
    assert "swapped" in sentence(swapped, TOLD)


def test_more_start_up_is_told_from_slow_links() -> None:
    """Half a second on top of every phase, whatever its bytes."""
    verdict = judged(make_timed(TOLD, Machine(TOLD, late=0.5)))
    assert verdict.cause is not None
    assert verdict.cause.best.suspect.kind == "start-up"
    assert verdict.cause.best.x == pytest.approx(0.5, rel=0.1)


def test_a_gain_that_is_not_there_fails_alone() -> None:
    """Expectation says 0.75 of the default, the bytes of the run are as many on both sides: the prediction by
    those bytes holds, the promised gain does not, and no link is blamed.
    """
    timed = make_timed(TOLD, Machine(TOLD), gain=1.0)
    fewer = [
        replace(
            one,
            expected=replace(
                one.expected,
                modelled={phase: 0.75 * seconds for phase, seconds in one.expected.modelled.items()},
            ),
        )
        if one.side == "plan"
        else one
        for one in timed
    ]
    verdict = judged(fewer)
    assert (verdict.state, verdict.ok, verdict.cause) == ("gain", False, None)
    assert sentence(verdict, TOLD).startswith("The promised gain fails: ")
    assert sentence(verdict, TOLD).endswith("nor do the bytes that were sent hold it")


def test_a_side_that_is_slow_by_itself_is_no_links_fault() -> None:
    """The plan's bytes are fewer and take as long as the default's: prediction and gain both fail."""
    verdict = judged(make_timed(TOLD, Machine(TOLD), shown=1.0))
    assert verdict.off
    assert verdict.missed
    assert verdict.cause is not None
    assert (verdict.cause.best.suspect.kind, verdict.cause.best.suspect.what) == ("side", "plan")


def test_a_small_gain_is_not_told_and_fails_nothing() -> None:
    """A few per cent promised, and a tolerance of more."""
    verdict = judged(make_timed(TOLD, Machine(TOLD), gain=0.95))
    assert (verdict.state, verdict.ok) == ("held", True)
    assert "too small a gain to be told here" in sentence(verdict, TOLD)


def test_noise_decides_nothing() -> None:
    """Repeats that differ by their whole length: neither a failure nor a success, and what to do about it."""
    verdict = judged(make_timed(TOLD, Machine(TOLD, noise=1.0), layers=2, repeats=3))
    assert (verdict.state, verdict.ok) == ("undecided", True)
    assert "ask for more --repeats" in sentence(verdict, TOLD)


def test_every_second_plan_is_held_against_the_plan() -> None:
    """Gains over the default and over another plan, of each phase and of both."""
    sides = ("plan", "default", "other.json")
    verdict = judged(make_timed(TOLD, Machine(TOLD), layers=2, sides=sides))
    assert [(one.against, one.name) for one in verdict.gains] == [
        (side, name) for side in sides[1:] for name in ("dispatch", "combine", "dispatch and combine")
    ]
