"""Loads of a stated skew: the busiest expert has exactly the multiple that was asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.load.skewed import hot_shares, lognormal_shares


@given(experts=st.integers(2, 64), drawn=st.floats(0, 1), seed=st.integers(0, 9))
def test_the_most_popular_expert_has_the_multiple_asked_for(experts: int, drawn: float, seed: int) -> None:
    """From even to almost everything, whichever expert it is."""
    wanted = 1 + drawn * (experts - 1) * 0.99
    order_E = np.random.default_rng(seed).permutation(experts)
    share_E = lognormal_shares(experts, wanted, order_E)
    assert share_E.sum() == pytest.approx(1)
    assert share_E.max() * experts == pytest.approx(wanted)
    assert (np.diff(share_E[order_E]) >= 0).all()


def test_lognormal_shares_are_even_in_their_logarithm() -> None:
    """The middle of the quantiles is the middle of the logarithms: what makes them lognormal."""
    log_E = np.log(lognormal_shares(33, 5.0, np.arange(33)))
    assert log_E[16] == pytest.approx((log_E[0] + log_E[-1]) / 2)


def test_hot_experts_have_the_multiple_and_the_others_the_rest() -> None:
    """Two of eight at three times the mean leave a quarter to six."""
    assert hot_shares(8, (2, 5), 3.0) * 8 == pytest.approx([1 / 3, 1 / 3, 3, 1 / 3, 1 / 3, 3, 1 / 3, 1 / 3])


@pytest.mark.parametrize(("hot", "times"), [((0, 1), 4.5), (range(8), 1.5), ((0,), 0.5), ((0,), 9.0)])
def test_more_than_there_is_is_refused(hot: tuple[int, ...], times: float) -> None:
    """Shares sum to one."""
    with pytest.raises(ValueError, match="times the mean"):
        hot_shares(8, hot, times)
