"""Capacity factors: the formulas of three engines, and drops that agree with drawn tokens."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from planner.load import LoadProfile, capacity_report, parse_share
from planner.load.capacity.drops import dropped_share
from planner.load.capacity.engines import ENGINES
from tests.planner.engines.examples import TINY

LAYERS = TINY.placed_layer_ids


def load(counts_E: "np.typing.ArrayLike", windows: int = 1) -> LoadProfile:
    """The same counts in every layer and window."""
    return LoadProfile(
        np.tile(np.asarray(counts_E, dtype=np.int64), (windows, len(LAYERS), 1)), LAYERS, "made for tests"
    )


def skewed() -> LoadProfile:
    return load(1000 / (1 + np.arange(TINY.experts)) ** 0.5)


@pytest.mark.parametrize(
    ("engine", "tokens", "factor", "capacity"),
    [
        ("megatron", 100, 1.0, 13),
        ("megatron", 100, 1.25, 16),
        ("deepspeed", 100, 1.25, 16),
        ("deepspeed", 8, 1.0, 4),
        ("tutel", 100, 1.0, 16),
        ("tutel", 100, 1.25, 16),
        ("tutel", 100, 1.5, 24),
        ("tutel", 64, 0.5, 0),
    ],
)
def test_capacity_formulas(engine: str, tokens: int, factor: float, capacity: int) -> None:
    """By hand, for 64 experts and top 8: 100 * 8 / 64 = 12.5 rounds up.

    DeepSpeed takes at least 4; Tutel rounds tokens / experts up, times k, cut before.
    """
    (found,) = (known for known in ENGINES if known.name == engine)
    assert found.capacity(tokens, TINY, factor) == capacity


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**16), tokens=st.integers(4, 60), slack=st.floats(0.3, 3))
def test_drops_agree_with_drawn_tokens(seed: int, tokens: int, slack: float) -> None:
    """Twenty thousand steps drawn for each expert; the mean is within five standard errors.

    Where hardly one assignment in all steps is dropped, the errors say nothing: ten of them either way.
    """
    draw = np.random.default_rng(seed)
    experts, top_k = 8, 2
    share_E = draw.dirichlet(np.full(experts, 20.0))
    capacity = max(1, int(slack * tokens * top_k / experts))
    over_NE = np.maximum(draw.binomial(tokens, share_E * top_k, size=(20_000, experts)) - capacity, 0)
    drawn_N = over_NE.sum(axis=1) / (tokens * top_k)
    found = float(dropped_share(share_E[None, None], tokens, top_k, capacity)[0, 0])
    rare = 10 / (len(drawn_N) * tokens * top_k)
    error = 5 * drawn_N.std() / math.sqrt(len(drawn_N))
    assert found == pytest.approx(drawn_N.mean(), abs=error + rare)


def test_one_token_is_never_dropped_and_no_capacity_drops_all() -> None:
    """The two ends: room for all tokens, and for none."""
    share = np.full((1, 1, 4), 0.25)
    assert dropped_share(share, 100, 2, 100)[0, 0] == 0
    assert dropped_share(share, 100, 2, 0)[0, 0] == pytest.approx(1)


def test_an_expert_that_every_token_chooses_drops_what_is_beyond_its_capacity() -> None:
    """Share 1/2 with top 2: all 100 tokens come, 60 are taken: 40 of 200 assignments.

    The others stay within theirs.
    """
    share = np.array([[[0.5, 0.25, 0.125, 0.125]]])
    assert dropped_share(share, 100, 2, 60)[0, 0] == pytest.approx(0.2 + over(100, 0.5, 60) / 200, abs=1e-12)


def over(tokens: int, chance: float, capacity: int) -> float:
    """E[(X - capacity)+] of a binomial, summed term by term."""
    return sum(
        (count - capacity) * math.comb(tokens, count) * chance**count * (1 - chance) ** (tokens - count)
        for count in range(capacity + 1, tokens + 1)
    )


def test_drops_fall_as_the_factor_grows() -> None:
    """For every engine and layer; the skewed load drops more than an even one."""
    report, even = (capacity_report(TINY, found, 8, 512) for found in (skewed(), load(np.ones(TINY.experts))))
    for found, calm in zip(report.engines, even.engines, strict=True):
        shares = [drop.dropped for drop in found.by_factor]
        assert shares == sorted(shares, reverse=True)
        assert shares[0] > calm.by_factor[0].dropped


@pytest.mark.parametrize("target", [0.05, 0.001])
def test_the_chosen_factor_is_the_least_that_keeps_the_target(target: float) -> None:
    """It keeps every layer within the target, and a hundredth less does not; the flags carry it."""
    for found in capacity_report(TINY, skewed(), 8, 512, target).engines:
        assert found.chosen is not None
        assert found.chosen.worst <= target
        less = found.engine.capacity(512, TINY, round(found.chosen.factor - 0.01, 2))
        share_WLE = skewed().shares_LE[None]
        assert less < found.chosen.capacity
        assert dropped_share(share_WLE, 512, TINY.top_k, less).max() > target
        assert f"{found.chosen.factor:g}" in (found.flags or "")


def test_windows_are_weighed_by_their_tokens() -> None:
    """Two windows with opposite hot halves drop more than their even sum would."""
    half = TINY.experts // 2
    counts_WLE = (
        np.tile(np.array([[30] * half + [10] * half, [10] * half + [30] * half]), (len(LAYERS), 1, 1))
        .transpose(1, 0, 2)
        .copy()
    )
    report = capacity_report(TINY, LoadProfile(counts_WLE, LAYERS, "made for tests"), 8, 512)
    even = capacity_report(TINY, load(np.ones(TINY.experts)), 8, 512)
    assert report.engines[0].by_factor[1].dropped > 10 * even.engines[0].by_factor[1].dropped


def test_many_windows_are_joined_and_it_is_said() -> None:
    """More windows than are worth their time."""
    report = capacity_report(TINY, load(np.ones(TINY.experts), windows=40), 8, 64)
    assert "40 windows were joined to 16" in report.notes


@pytest.mark.parametrize(
    ("ep", "tokens", "target", "message"),
    [
        (7, 64, None, "--ep 7: .* use one of 1, 2, 4, 8"),
        (0, 64, None, "--ep 0"),
        (8, 0, None, "--tokens-per-rank 0"),
        (8, 64, 0.0, "--target 0: give a share"),
    ],
)
def test_questions_without_an_answer_are_refused(
    ep: int, tokens: int, target: float | None, message: str
) -> None:
    """Each in one line that says what to give."""
    with pytest.raises(BadInput, match=message):
        capacity_report(TINY, skewed(), ep, tokens, target)


def test_a_share_is_read_as_percent_or_plain() -> None:
    """0.1% is 0.001; a word is refused."""
    assert parse_share("0.1%") == parse_share("0.001") == pytest.approx(0.001)
    with pytest.raises(BadInput, match="'little' is not a share"):
        parse_share("little")


def test_the_report_is_plain_data() -> None:
    """One entry for each engine with a share for each layer."""
    found = capacity_report(TINY, skewed(), 8, 64, 0.01).to_dict()
    assert [engine["engine"] for engine in found["engines"]] == ["megatron", "deepspeed", "tutel"]
    assert all(
        len(drop["dropped_per_layer"]) == len(LAYERS)
        for engine in found["engines"]
        for drop in engine["factors"]
    )
