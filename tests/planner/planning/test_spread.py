"""The spread of a budget over layers against the exact answer, found by dynamic programming.

The programme goes over everything that was handed out.
"""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import Infeasible
from planner.planning import PlanRequest, budget_report
from planner.planning.spread import _pieces, fewest_for, spread

Floats = npt.NDArray[np.float64]


def exact_seconds(seconds_SL: Floats, budget: int) -> float:
    """The least sum of layer seconds over every spread of at most `budget`."""
    best_B = np.zeros(budget + 1)
    for seconds_S in seconds_SL.T:
        best_B = np.array(
            [
                min(best_B[b - s] + seconds_S[s] for s in range(min(b, len(seconds_S) - 1) + 1))
                for b in range(budget + 1)
            ]
        )
    return float(best_B[budget])


@st.composite
def curves(draw: st.DrawFn) -> Floats:
    """Any whole seconds: rising, falling, flat, not convex."""
    sizes, layers = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    return np.array(
        draw(
            st.lists(
                st.lists(st.integers(0, 30), min_size=layers, max_size=layers), min_size=sizes, max_size=sizes
            )
        ),
        dtype=np.float64,
    )


@given(seconds_SL=curves(), budget=st.integers(0, 30))
def test_a_spread_keeps_the_budget_and_lies_between_its_bound_and_doing_nothing(
    seconds_SL: Floats, budget: int
) -> None:
    """And the exact answer lies between bound and spread."""
    found = spread(seconds_SL, budget)
    assert found.extra_L.min() >= 0
    assert found.extra_L.max() < len(seconds_SL)
    assert found.extra_L.sum() <= budget
    exact = exact_seconds(seconds_SL, budget)
    assert found.bound_seconds <= exact + 1e-9
    assert exact <= found.seconds <= seconds_SL[0].sum()
    assert found.seconds_L.tolist() == seconds_SL[found.extra_L, np.arange(seconds_SL.shape[1])].tolist()


@given(seconds_SL=curves(), pieces=st.integers(0, 12))
def test_a_spread_is_exact_where_a_piece_ends(seconds_SL: Floats, pieces: int) -> None:
    """Budgets that the first pieces of the hulls use up."""
    budget = sum(piece.end - piece.start for piece in _pieces(seconds_SL)[:pieces])
    assert spread(seconds_SL, budget).seconds == pytest.approx(exact_seconds(seconds_SL, budget))


@given(
    gains=st.lists(st.lists(st.integers(0, 20), min_size=4, max_size=4), min_size=1, max_size=4),
    budget=st.integers(0, 20),
)
def test_a_spread_of_falling_gains_is_exact_for_every_budget(gains: list[list[int]], budget: int) -> None:
    """Convex curves, as theory says."""
    falling_LS = -np.sort(-np.array(gains, dtype=np.float64), axis=1)
    seconds_SL = 100 - np.concatenate([np.zeros((len(gains), 1)), np.cumsum(falling_LS, axis=1)], axis=1).T
    found = spread(seconds_SL, budget)
    assert found.seconds == pytest.approx(exact_seconds(seconds_SL, budget))
    assert found.bound_seconds == pytest.approx(found.seconds)


def test_the_fewest_for_a_time_is_the_first_that_reaches_it() -> None:
    """Equal rows with one slot more take 5 + 4 = 9; layer 0 alone with two more takes 3 + 5 = 8, with one
    more 5 + 5 = 10.
    """
    seconds_SL = np.array([[9.0, 5], [5, 4], [3, 4]])
    assert fewest_for(seconds_SL, 9.0) == 2
    assert fewest_for(seconds_SL, 14.0) == 0
    assert fewest_for(seconds_SL, 1.0) is None


def test_the_report_of_a_model_adds_up() -> None:
    """OLMoE on 16 GPUs: 16 layers, 64 slots fit without redundancy.

    An even load gains nothing, so equal rows take none either.
    """
    report = budget_report(PlanRequest("olmoe", "hgx-h100:2"), 3 * 16 + 5)
    assert report.total_redundant == 48
    assert report.to_dict()["unequal"]["redundant"] == int(report.unequal.extra_L.sum()) * 16 <= 48
    assert report.unequal.seconds <= report.equal_seconds
    assert any("53 redundant experts are not whole slots" in note for note in report.notes)
    assert any("rows of one length" in note for note in report.notes)


@pytest.mark.parametrize(
    ("total", "words"),
    [(0, "need 8 each, 256 in all"), (10**6, r"at most \d+ are looked at, \d+ slots a GPU")],
)
def test_a_total_that_does_not_fit_says_what_would(total: int, words: str) -> None:
    """Mixtral on 16 GPUs needs two of each expert."""
    with pytest.raises(Infeasible, match=words):
        budget_report(PlanRequest("mixtral", "hgx-h100:2"), total)
