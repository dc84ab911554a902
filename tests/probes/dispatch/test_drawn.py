"""Tokens drawn by the chances of their experts, against every set of experts written out."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cost import inclusion_E
from probes.dispatch.drawn import _drawn_TK, _take_EJ, draw_by_inclusion

SMALL = {  # chances of each expert by name of the case; they sum to whole picks
    "even": (0.5, 0.5, 0.5, 0.5),
    "skewed": (0.9, 0.6, 0.3, 0.15, 0.05),
    "nearly all": (0.99, 0.98, 0.97, 0.06),
    "hardly ever": (0.999999, 0.5, 0.5, 0.000001, 0.000001, 1e-300, 0.999999),
}


def chances_of_sets(take_EJ: np.ndarray, picks: int) -> dict[tuple[int, ...], float]:
    """The chance of every set of `picks` experts: a walk along the experts for each."""
    found = {}
    for chosen in combinations(range(len(take_EJ)), picks):
        chance, left = 1.0, picks
        for expert, take_J in enumerate(take_EJ):
            chance *= take_J[left] if expert in chosen else 1 - take_J[left]
            left -= expert in chosen
        found[chosen] = chance
    return found


@st.composite
def loads(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """Chances from shares between even and so skewed that most experts have next to nothing, some none."""
    experts = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shares_E = rng.lognormal(0, draw(st.sampled_from((0.0, 0.5, 2.0, 8.0, 40.0))), experts)
    shares_E[rng.random(experts) < draw(st.sampled_from((0.0, 0.4)))] = 0
    top_k = draw(st.integers(1, min(experts, 8)))
    return inclusion_E(shares_E / max(shares_E.sum(), 1e-300), top_k), top_k


@pytest.mark.parametrize("case", SMALL)
def test_every_expert_has_exactly_its_chance(case: str) -> None:
    """Summed over all sets of experts that a token can have."""
    chance_E = np.array(SMALL[case])
    picks = round(chance_E.sum())
    sets = chances_of_sets(_take_EJ(chance_E, picks), picks)
    found_E = [
        sum(chance for chosen, chance in sets.items() if expert in chosen) for expert in range(len(chance_E))
    ]
    assert sum(sets.values()) == pytest.approx(1, abs=1e-12)
    assert found_E == pytest.approx(chance_E, abs=1e-9)


def test_nothing_is_said_of_which_experts_go_together() -> None:
    """The law is a product over a set's experts: only their own weights tell two sets apart."""
    sets = chances_of_sets(_take_EJ(np.array(SMALL["skewed"]), 2), 2)
    assert sets[0, 1] * sets[2, 3] == pytest.approx(sets[0, 2] * sets[1, 3], rel=1e-8)
    assert sets[0, 4] * sets[1, 2] == pytest.approx(sets[0, 2] * sets[1, 4], rel=1e-8)


def test_the_odds_of_two_picks_by_hand() -> None:
    """Weights 3, 2, 1 and 1, two picks: the pairs weigh 6, 3, 3, 2, 2 and 1, of 17."""
    chance_E = np.array([12, 10, 6, 6]) / 17
    sets = chances_of_sets(_take_EJ(chance_E, 2), 2)
    assert [17 * chance for chance in sets.values()] == pytest.approx([6, 3, 3, 2, 2, 1], abs=1e-6)


@pytest.mark.parametrize("tokens", [3, 20])
def test_each_token_of_a_draw_follows_the_law(tokens: int) -> None:
    """Tokens share what is rounded; one alone, over many draws, has each pair as often as it must."""
    chance_E, draws = np.array(SMALL["skewed"]), 3000
    take_EJ = _take_EJ(chance_E, 2)
    sets = chances_of_sets(take_EJ, 2)
    seen_DTK = [_drawn_TK(take_EJ, tokens, np.random.default_rng(seed)) for seed in range(draws)]
    for token in (0, tokens - 1):
        seen = [tuple(drawn_TK[token].tolist()) for drawn_TK in seen_DTK]
        for chosen, chance in sets.items():
            spread = np.sqrt(draws * chance * (1 - chance))
            assert seen.count(chosen) == pytest.approx(draws * chance, abs=5 * spread)


def test_one_large_draw_has_the_law_of_its_pairs() -> None:
    chance_E, tokens = np.array(SMALL["skewed"]), 100_000
    experts_TK = draw_by_inclusion(chance_E, tokens, 2, np.random.default_rng(1))
    for (first, second), chance in chances_of_sets(_take_EJ(chance_E, 2), 2).items():
        assert (experts_TK == (first, second)).all(axis=1).mean() == pytest.approx(chance, abs=0.005)


@given(load=loads(), seed=st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_experts_are_distinct_and_as_many_as_expected(load: tuple[np.ndarray, int], seed: int) -> None:
    """In every token, for any skew; the count of each expert is off by what rounding makes, not by chance."""
    chance_E, top_k = load
    experts_TK = draw_by_inclusion(chance_E, 400, top_k, np.random.default_rng(seed))
    again_TK = draw_by_inclusion(chance_E, 400, top_k, np.random.default_rng(seed))
    assert (experts_TK == again_TK).all()
    assert experts_TK.shape == (400, top_k)
    assert (np.diff(experts_TK, axis=1) > 0).all()
    counts_E = np.bincount(experts_TK.ravel(), minlength=len(chance_E))
    told_E = chance_E > 0
    assert np.abs(counts_E - 400 * chance_E)[told_E].max(initial=0) < 9
    assert (counts_E[chance_E == 1] == 400).all()
    if told_E.sum() >= top_k:
        assert not counts_E[~told_E].any()


def test_few_tokens_touch_as_many_experts_as_independent_ones() -> None:
    """16 tokens of two experts among 64: 25.4 experts if each token is by itself; evened it were 32."""
    chance_E = np.full(64, 2 / 64)
    rngs = map(np.random.default_rng, range(200))
    touched = [len(np.unique(draw_by_inclusion(chance_E, 16, 2, rng))) for rng in rngs]
    assert np.mean(touched) == pytest.approx(64 * (1 - (1 - 2 / 64) ** 16), abs=0.8)


def test_a_load_keeps_its_skew() -> None:
    """An expert in 9 of 10 tokens stays in 9 of 10; drawn one after the other by shares it was in 8 of 10."""
    chance_E = inclusion_E(np.array([0.3, *[0.7 / 15] * 15]), 3)
    assert chance_E[0] == pytest.approx(0.9)
    experts_TK = draw_by_inclusion(chance_E, 1000, 3, np.random.default_rng(0))
    assert (experts_TK == 0).any(axis=1).sum() == pytest.approx(900, abs=1)


def test_too_few_experts_with_load_are_filled_up_evenly() -> None:
    """All of the two that have load, and one in three of the others; with no load at all, any."""
    experts_TK = draw_by_inclusion(
        inclusion_E(np.array([0, 0.5, 0, 0, 0.5]), 3), 30, 3, np.random.default_rng(0)
    )
    assert np.bincount(experts_TK.ravel()).tolist() == [10, 30, 10, 10, 30]
    idle_TK = draw_by_inclusion(np.zeros(4), 40, 1, np.random.default_rng(0))
    assert np.bincount(idle_TK.ravel()).tolist() == [10, 10, 10, 10]


@pytest.mark.parametrize("chances", [(0.5, np.nan), (0.5, 0.4), (1.5, 0.5), (-0.5, 1.5)])
def test_chances_that_are_none_are_refused(chances: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="distinct"):
        draw_by_inclusion(
            np.array(chances), 1, round(np.nan_to_num(sum(chances), nan=1)), np.random.default_rng(0)
        )


def test_the_largest_models_are_drawn() -> None:
    """512 experts, 28 a token, as far from even as makes some certain: every token whole."""
    shares_E = np.random.default_rng(0).lognormal(0, 3, 512)
    chance_E = inclusion_E(shares_E / shares_E.sum(), 28)
    assert (chance_E == 1).any()
    experts_TK = draw_by_inclusion(chance_E, 2000, 28, np.random.default_rng(0))
    assert (np.diff(experts_TK, axis=1) > 0).all()
    counts_E = np.bincount(experts_TK.ravel(), minlength=512)
    assert np.abs(counts_E - 2000 * chance_E).max() < 10
