"""The dealing under `pack`: what no order of one round beats, keys that carry ids, copies that never meet."""

from itertools import permutations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.solvers.kernels import dealing
from planner.solvers.kernels.dealing import deal, lightest_first

Floats = npt.NDArray[np.float64]


def dealt_values(value_RE: Floats, bins: int, again: int) -> Floats:
    """value_SRB of all items dealt in rounds, of which so many are dealt again."""
    mask = dealing._mask(value_RE.shape[1])
    key_RE = np.sort(dealing._keys(value_RE, np.arange(value_RE.shape[1]), mask), axis=1)[:, ::-1]
    round_SRB = np.ascontiguousarray(key_RE.reshape(len(value_RE), -1, bins).transpose(1, 0, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dealing, "DEALT_AGAIN", again)
        return dealing._deal_rounds(round_SRB, mask, np.ones((len(value_RE), bins))).view(np.float64)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_a_round_dealt_again_could_not_be_dealt_better(seed: int, again: int) -> None:
    """Three rounds over four bins, smallest items dealt again first: no permutation of the round dealt last
    has a lower peak, and the peak did not rise.
    """
    value_RE = np.random.default_rng(seed).lognormal(0, 1, (1, 12))
    value_SB = dealt_values(value_RE, 4, again)[:, 0]
    last = (3 - again) % 3
    rest_B = value_SB.sum(axis=0) - value_SB[last]
    peak = value_SB.sum(axis=0).max()
    assert min((rest_B + value_SB[last][list(order)]).max() for order in permutations(range(4))) >= peak * (
        1 - 1e-9
    )
    assert peak <= dealt_values(value_RE, 4, again - 1)[:, 0].sum(axis=0).max() * (1 + 1e-9)


def test_dealing_again_is_ten_times_nearer_to_even() -> None:
    """58 layers of 288 like items over 32 bins: what rounds dealt once leave above the mean falls to less
    than a tenth.
    """
    value_RE = np.random.default_rng(0).uniform(1, 3, (58, 288))
    once, again = (
        (total_RB.max(axis=1) / total_RB.mean(axis=1) - 1).mean()
        for total_RB in (dealt_values(value_RE, 32, n).sum(axis=0) for n in (0, 27))
    )
    assert again < once / 10


def test_rows_do_not_know_each_other() -> None:
    """A row is dealt alike alone and in company, so layers may be solved in any parts."""
    draw = np.random.default_rng(1)
    value_RE, times_RE = draw.lognormal(0, 1.5, (6, 20)), np.tile(np.repeat([1, 3], 10), (6, 1))
    together_RBS = deal(value_RE, times_RE, np.ones((6, 8)))
    for row in range(6):
        assert (
            deal(value_RE[row : row + 1], times_RE[row : row + 1], np.ones((1, 8)))[0].tolist()
            == together_RBS[row].tolist()
        )


@pytest.mark.parametrize("value", [0.0, 7.0])
def test_equal_values_are_dealt_too(value: float) -> None:
    """Ties, also of nothing at all: every item comes out as often as it went in, and none meets itself."""
    item_RBS = deal(np.full((1, 6), value), np.full((1, 6), 2), np.ones((1, 4)))
    assert np.bincount(item_RBS.ravel()).tolist() == [2] * 6
    assert all(len(set(row)) == 3 for row in item_RBS[0].tolist())


def test_bins_are_ordered_by_total_then_number() -> None:
    """Lightest first; of equal ones the lower number."""
    assert lightest_first(np.array([[3.0, 1.0, 2.0, 1.0, 0.0]])).tolist() == [[4, 1, 3, 2, 0]]
