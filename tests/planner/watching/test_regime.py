"""Where the present load begins: at the last shift, never at what is chance."""

import numpy as np
import pytest

from planner.watching.regime import chance, distance, present_from
from tests.planner.watching.watched import counts


@pytest.mark.parametrize(
    ("loads", "first"),
    [
        ((1,), 0),
        ((1, 1, 1, 1, 1, 1), 0),
        ((1, 1, 1, 2), 3),
        ((1, 1, 1, 2, 2), 3),
        ((1, 2), 1),
        ((1, 1, 1, 2, 2, 1), 5),
    ],
)
@pytest.mark.parametrize("tokens", [1_000, 20_000])
def test_the_present_load_begins_at_the_last_shift(loads: tuple[int, ...], first: int, tokens: int) -> None:
    windows = np.array([counts(load, draw, tokens) for draw, load in enumerate(loads)])
    assert present_from(windows) == first


def test_a_load_that_drifts_a_little_each_time_is_one_load() -> None:
    """Windows as far apart as windows were before are no shift, however many tokens they hold."""
    share = np.random.default_rng(0).dirichlet(np.full(64, 2.0), 3)
    jitter = np.exp(np.random.default_rng(1).normal(0, 0.2, (12, 3, 64)))
    windows = np.rint(1e6 * share * jitter / (share * jitter).sum(axis=2, keepdims=True)).astype(np.int64)
    assert present_from(windows) == 0


def test_a_load_that_goes_back_and_forth_is_one_load() -> None:
    """A plan for both is what serves it best: for the last window alone it would always be late."""
    windows = np.array([counts(1 + draw % 2, draw) for draw in range(8)])
    assert present_from(windows) == 0


def test_distance_is_the_share_that_went_elsewhere() -> None:
    one, other = np.array([[8.0, 2.0, 0.0]]), np.array([[8.0, 0.0, 2.0]])
    assert distance(one, other) == pytest.approx(0.2)


def test_chance_is_the_distance_of_two_samples_of_one_load() -> None:
    pairs = [(counts(3, 2 * draw), counts(3, 2 * draw + 1)) for draw in range(20)]
    found = np.mean([distance(one.astype(float), other.astype(float)) for one, other in pairs])
    assert found == pytest.approx(chance(*(each.astype(float) for each in pairs[0])), rel=0.1)
