"""Rules that look at the batch: rows, blocks and the load.

Each share is held against a count, or a choice of tokens, made another way.

Shapes: T tokens, K = top_k, P slots, E experts, S sources.
"""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.bounds import load_bound
from planner.placement import Placement
from planner.replica import CHOICES, Shares, Situation, best_split_1P, blocks
from planner.replica.registry import RULES
from tests.planner.small import Ints, random_row, small_model

THREE_REPLICAS = np.array([0, 1, 0, 2, 3, 0])


def share_SP(
    rule: str, expert_P: Ints, tokens: int, load_E: Shares | None = None, top_k: int = 1, gpus: int = 2
) -> Shares:
    """The shares of one layer's row."""
    experts = int(expert_P.max()) + 1
    situation = Situation(
        small_model(experts, top_k),
        np.zeros(gpus, dtype=np.int64),
        tokens,
        None if load_E is None else load_E[None],
    )
    return next(RULES[rule](Placement(expert_P[None], (0,), gpus), situation))


@st.composite
def batches(draw: st.DrawFn) -> tuple[Ints, Ints, int, int]:
    """expert_P, experts_TK of one rank, the rank, and the number of GPUs."""
    gpus, experts = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    slots_per_gpu = draw(st.integers(-(-experts // gpus), experts))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    top_k = draw(st.integers(1, experts))
    experts_TK = np.array([rng.permutation(experts)[:top_k] for _ in range(draw(st.integers(1, 40)))])
    return random_row(rng, experts, gpus, slots_per_gpu), experts_TK, draw(st.integers(0, gpus - 1)), gpus


@pytest.mark.parametrize("rule", CHOICES)
@given(case=batches())
def test_a_choice_is_a_slot_of_the_expert(rule: str, case: tuple[Ints, Ints, int, int]) -> None:
    """For every assignment of every batch."""
    expert_P, experts_TK, rank, gpus = case
    assert (expert_P[CHOICES[rule](experts_TK, expert_P, rank, gpus)] == experts_TK).all()


@pytest.mark.parametrize("rule", ["hashed", "row-index"])
@given(case=batches())
def test_row_shares_are_the_choices_of_rows_that_all_ask_for_the_expert(
    rule: str, case: tuple[Ints, Ints, int, int]
) -> None:
    """Counted over the batches of all ranks, for as many rows as the batch has."""
    expert_P, experts_TK, _, gpus = case
    found_P = share_SP(rule, expert_P, len(experts_TK), gpus=gpus)[0]
    for expert in range(int(expert_P.max()) + 1):
        asked_T1 = np.full((len(experts_TK), 1), expert)
        chosen = np.concatenate(
            [CHOICES[rule](asked_T1, expert_P, rank, gpus).ravel() for rank in range(gpus)]
        )
        counted_P = np.bincount(chosen, minlength=len(expert_P)) / len(chosen)
        assert found_P[expert_P == expert] == pytest.approx(counted_P[expert_P == expert])


def test_one_token_a_rank_always_takes_the_first_replica_under_the_hash() -> None:
    """Row 0 hashes to 0 on every rank; over many rows each of three replicas gets a third."""
    assert share_SP("hashed", THREE_REPLICAS, 1)[0, [0, 2, 5]].tolist() == [1, 0, 0]
    assert share_SP("hashed", THREE_REPLICAS, 30_000)[0, [0, 2, 5]] == pytest.approx([1 / 3] * 3, abs=1e-3)


def test_hash_of_the_first_rows_by_hand() -> None:
    """2654435769 t mod 2^32 is 0, 2654435769, 1013904242, 3668339987; modulo 3 that is 0, 0, 2, 2."""
    slots_TK = CHOICES["hashed"](np.zeros((4, 1), dtype=np.int64), THREE_REPLICAS, 1, 2)
    assert slots_TK.ravel().tolist() == [0, 0, 5, 5]


def slow_round_robin(experts_TK: Ints, expert_P: Ints, rank: int) -> list[list[int]]:
    """The kernel's words, one entry after the other."""
    slots: list[int] = []
    seen: Counter[int] = Counter()
    for entry, expert in enumerate(experts_TK.ravel().tolist()):
        block, within = divmod(entry, blocks.BLOCK_ENTRIES)
        if within == 0:
            seen.clear()
        held = np.flatnonzero(expert_P == expert).tolist()
        slots.append(held[(seen[expert] + block + rank) % len(held)])
        seen[expert] += 1
    return np.array(slots).reshape(experts_TK.shape).tolist()  # type: ignore[no-any-return]


@given(case=batches(), entries=st.integers(1, 12))
def test_round_robin_choices_are_the_kernels(case: tuple[Ints, Ints, int, int], entries: int) -> None:
    """For blocks of any length, so that batches have several."""
    expert_P, experts_TK, rank, gpus = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_ENTRIES", entries)
        assert CHOICES["round-robin"](experts_TK, expert_P, rank, gpus).tolist() == slow_round_robin(
            experts_TK, expert_P, rank
        )


@pytest.mark.parametrize("entries", [1, 3, 4, 7, 100])
@pytest.mark.parametrize(("top_k", "replicas"), [(1, 2), (2, 2), (2, 3), (3, 3)])
def test_round_robin_shares_are_the_average_over_all_batches(
    entries: int, top_k: int, replicas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four tokens that ask for the expert with chance 0.4 each, at any position of theirs.

    Every outcome, weighted.
    """
    monkeypatch.setattr(blocks, "BLOCK_ENTRIES", entries)
    tokens, chance = 4, 0.4
    expert_P = np.array([0, *range(1, 1 + top_k), *[0] * (replicas - 1)])
    taken_n = np.zeros(replicas)
    for positions in product(range(-1, top_k), repeat=tokens):  # -1: the token does not ask for it
        weight = np.prod([1 - chance if position < 0 else chance / top_k for position in positions])
        experts_TK = np.ones((tokens, top_k), dtype=np.int64)
        for token, position in enumerate(positions):
            if position >= 0:
                experts_TK[token, position] = 0
        slots_TK = np.array(slow_round_robin(experts_TK, expert_P, rank=0))
        taken_n += weight * np.bincount(slots_TK[experts_TK == 0], minlength=len(expert_P))[expert_P == 0]
    found_n = blocks.expected_shares(np.array([chance]), replicas, tokens, top_k)[0]
    assert found_n == pytest.approx(taken_n / taken_n.sum())


def test_round_robin_starts_at_the_rank_and_is_even_in_the_long_run() -> None:
    """One token a rank: rank r uses replica r mod 3.

    Over 4096 tokens all ranks split evenly, within a token a block.
    """
    load_E = np.array([0.4, 0.2, 0.2, 0.2])
    few_SP = share_SP("round-robin", THREE_REPLICAS, 1, load_E)
    assert few_SP[:, [0, 2, 5]].round(12).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert share_SP("round-robin", THREE_REPLICAS, 4096, load_E)[:, [0, 2, 5]] == pytest.approx(
        np.full((2, 3), 1 / 3), abs=2e-3
    )


def test_an_expert_without_load_has_shares_too() -> None:
    """They sum to 1 and are what the first entry would do."""
    found_SP = share_SP("round-robin", THREE_REPLICAS, 8, np.array([0, 0.5, 0.5, 0]))
    assert found_SP[:, [0, 2, 5]].sum(axis=1) == pytest.approx([1, 1])
    assert found_SP[0, 0] == pytest.approx(1)


@given(seed=st.integers(0, 10_000), gpus=st.integers(1, 4), experts=st.integers(1, 6), data=st.data())
@settings(deadline=None)
def test_the_best_split_is_a_split_that_no_even_one_beats(
    seed: int, gpus: int, experts: int, data: st.DataObject
) -> None:
    """And that stays above the bound that holds for every split."""
    slots_per_gpu = data.draw(st.integers(-(-experts // gpus), experts))
    rng = np.random.default_rng(seed)
    load_E = rng.integers(0, 50, experts).astype(np.float64)
    expert_P = random_row(rng, experts, gpus, slots_per_gpu)
    share_P = best_split_1P(expert_P, load_E, gpus)[0]
    assert share_P.min() >= 0
    assert np.bincount(expert_P, share_P, experts) == pytest.approx(np.ones(experts))
    peak = (load_E[expert_P] * share_P).reshape(gpus, -1).sum(axis=1).max()
    even_P = load_E[expert_P] / np.bincount(expert_P, minlength=experts)[expert_P]
    assert peak <= even_P.reshape(gpus, -1).sum(axis=1).max() + 1e-6
    assert peak >= load_bound(load_E[None], gpus, slots_per_gpu, even=False).load_L[0] - 1e-6


def test_the_best_split_fills_the_colder_gpu() -> None:
    """Expert 0 (6) on both GPUs beside 5 and 1: one sixth of it to the first, so that both carry 6."""
    share_1P = share_SP("lp", np.array([0, 1, 0, 2]), 128, np.array([6, 5, 1]) / 12)
    assert share_1P[0].tolist() == pytest.approx([1 / 6, 1, 5 / 6, 1])


def test_an_expert_without_a_slot_is_our_fault() -> None:
    """Never passed over in silence."""
    for choose in CHOICES.values():
        with pytest.raises(ValueError, match="expert 2 has no slot"):
            choose(np.array([[2]]), np.array([0, 1]), 0, 1)
