"""The ranking law: what can be run comes first, what does not fit last; ties are within the model's error."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from planner.cost import WholeStep
from planner.planning import Figures, Standing, SweepRow
from planner.planning.sweeping.ranking import once, ranked
from planner.planning.sweeping.request import Point
from planner.planning.sweeping.row import Service

POINT = Point("lab", 8, 2, 0, None, "decode", None, 128, 1)


def row(seconds: float | None, *, serves: bool = True, error: float | None = None, ep: int = 8) -> SweepRow:
    """A row of 100 tokens a step; None does not fit."""
    point = replace(POINT, ep=ep)
    if seconds is None:
        return SweepRow(point, None, "too small")
    figures = Figures(
        redundant=0,
        slots_per_gpu=4,
        tokens_per_rank=100,
        transport="slot",
        replica_rule="even",
        step=WholeStep(
            seconds={"compute": seconds},
            tpot_seconds=seconds,
            ttft_seconds=1.0,
            tokens_per_s_per_gpu=100 / seconds,
            error="made for tests",
            error_share=error,
            ttft_error="",
            basis="",
        ),
        max_over_mean=1.0,
        bottleneck="compute",
        memory_left_bytes=1e9,
        requests=7,
        nics_halved=None,
        full_fabric=None,
        survives=0,
        services=(Service("lab", serves, own=False, why="" if serves else "cannot"),),
        method="refine",
    )
    return SweepRow(point, figures)


rows = st.builds(
    row,
    st.one_of(st.none(), st.integers(1, 50).map(lambda n: n / 10)),
    serves=st.booleans(),
    error=st.one_of(st.none(), st.sampled_from([0.0, 0.1, 0.3])),
)


@given(st.lists(rows, max_size=12), st.one_of(st.none(), st.just(2.0)))
def test_the_law(given_rows: list[SweepRow], tpot: float | None) -> None:
    """Nothing is lost; standings rise; within one, tokens fall; and each stands where its figures put it."""
    found = ranked(given_rows, tpot)
    assert sorted(map(id, given_rows)) == sorted(id(one.row) for one in found)
    standings = [one.standing for one in found]
    assert standings == sorted(standings)
    for one, following in pairwise(found):
        if one.standing == following.standing and one.row.figures and following.row.figures:
            assert one.row.figures.tokens_per_s_per_gpu >= following.row.figures.tokens_per_s_per_gpu
    for one in found:
        figures = one.row.figures
        assert (one.standing == Standing.DOES_NOT_FIT) == (figures is None)
        if figures is not None and one.standing == Standing.MEETS:
            assert figures.served
            assert tpot is None or figures.step.total_seconds <= tpot


def test_no_row_that_does_not_fit_is_above_one_that_does() -> None:
    found = ranked([row(None), row(9.0), row(1.0, serves=False), row(3.0)], 5.0)
    assert [one.standing.name for one in found] == ["MEETS", "SLOW", "UNSERVED", "DOES_NOT_FIT"]


def test_a_tie_is_within_the_error_of_the_first() -> None:
    """1.1 s is 9 % fewer tokens than 1 s: a tie at 10 %, none at 5 %, and none where no error is known."""
    for error, tie in ((0.10, True), (0.05, False), (None, False)):
        first, second = ranked([row(1.1, error=error), row(1.0, error=error)], None)
        assert not first.tie
        assert second.tie == tie


def test_what_is_slower_than_tpot_ties_with_nothing() -> None:
    found = ranked([row(1.0, error=0.5), row(1.2, error=0.5)], 1.1)
    assert [one.tie for one in found] == [False, False]


def test_tpot_is_no_limit_of_a_prefill_step() -> None:
    slow = row(9.0)
    prefill = SweepRow(replace(slow.point, phase="prefill"), slow.figures)
    assert ranked([prefill], 1.0)[0].standing == Standing.MEETS


def test_two_ways_to_the_same_number_of_replicas_are_one_row() -> None:
    """The first of them; what does not fit for another reason stays."""
    auto = row(1.0)
    same = SweepRow(replace(auto.point, redundant="auto"), auto.figures)
    other = SweepRow(replace(POINT, redundant=8), None, "another reason")
    assert once([auto, same, row(None), row(None), other]) == [auto, row(None), other]
