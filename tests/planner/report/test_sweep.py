"""What the first line of a sweep says beside its answer: wider and narrower layouts, ties, what misses."""

from dataclasses import replace

from planner.load import uniform_load
from planner.model import find_model
from planner.planning import PlanRequest, Ranked, Sweep, SweepRow
from planner.planning.sweeping.ranking import ranked
from planner.report.sweep_answer import answer_lines
from tests.planner.planning.sweeping.test_ranking import row


def first(*rows: SweepRow, tpot: float | None = None) -> str:
    order: list[Ranked] = ranked(rows, tpot)
    model = find_model("olmoe")
    return answer_lines(
        Sweep(PlanRequest("olmoe"), model, uniform_load(model), False, {"decode": order}, tpot, ()), "decode"
    )[0]


def on_full_fabric(one: SweepRow, tokens: float) -> SweepRow:
    assert one.figures is not None
    return replace(one, figures=replace(one.figures, full_fabric=tokens))


def test_a_wider_layout_that_is_slower_gains_nothing() -> None:
    assert first(row(1.0), row(1.25, ep=16)).endswith("; 2 x EP16 gains nothing (-20%)")


def test_a_wider_layout_that_a_full_fabric_would_make_faster_needs_it() -> None:
    """And not one that stays slower."""
    assert first(row(1.0), on_full_fabric(row(1.25, ep=16), 101.0)).endswith("; 2 x EP16 needs a 1:1 fabric")
    assert first(row(1.0), on_full_fabric(row(1.25, ep=16), 99.0)).endswith("gains nothing (-20%)")


def test_a_wider_layout_within_the_error_is_as_good() -> None:
    assert first(row(1.0, error=0.3), row(1.25, ep=16, error=0.3)).endswith(
        "is as good within the model's error"
    )


def test_a_narrower_layout_is_spoken_of_where_none_is_wider() -> None:
    """The nearest, where none fits; one that no engine serves says so."""
    assert first(row(1.0), row(None, ep=2), row(None, ep=4)).endswith("; 2 x EP4 does not fit")
    assert first(row(1.0), row(0.5, ep=4, serves=False)).endswith("; no engine serves 2 x EP4")


def test_where_nothing_is_fast_enough_the_shortest_step_is_nearest() -> None:
    """Not the one of most tokens."""
    wide, narrow = row(3.0), row(2.0, ep=4)
    assert wide.figures is not None
    more = replace(wide.figures, step=replace(wide.figures.step, tokens_per_s_per_gpu=500.0))
    said = first(replace(wide, figures=more), narrow, tpot=1.0)
    assert said.startswith("no layout is within --tpot 1 s; nearest is 2 x EP4")


def without_ep(one: SweepRow) -> SweepRow:
    return replace(one, point=replace(one.point, sliced=True))


def test_the_best_without_ep_is_spoken_of_beside_an_answer_with_it() -> None:
    """Not as a wider or narrower layout: how many tokens, ties, and what is too far off to choose by."""
    said = first(row(1.0), without_ep(row(1.25)))
    assert said.endswith("; without EP (2 x TP8, attention DP8) 20% fewer tokens/s")
    said = first(row(1.0), without_ep(row(1.25, error=0.25)))
    assert said.endswith("; without EP (2 x TP8, attention DP8) as many within the model's error")
    said = first(row(1.0), without_ep(row(1.25, error=0.4)))
    assert said.endswith("cannot be told apart, predictions are 40% off")


def test_the_best_with_ep_is_spoken_of_beside_an_answer_without() -> None:
    said = first(row(1.25), without_ep(row(1.0)))
    assert said.startswith("2 x TP8, attention DP8: 100 tokens/s/GPU")
    assert said.endswith("; with EP (2 x EP8, R = 0) 20% fewer tokens/s")
    assert first(row(None), without_ep(row(1.0))).endswith("; with EP nothing fits")
    assert first(row(1.0, serves=False), without_ep(row(1.0))).endswith("; no engine serves it with EP")


def test_a_step_without_ep_that_is_too_long_says_so() -> None:
    said = first(row(1.0), without_ep(row(3.0)), tpot=2.0)
    assert said.endswith("; without EP (2 x TP8, attention DP8) TPOT 3 s, too slow")
