"""Replica rules: every assignment goes somewhere, and to the slot that the engine's words name."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput
from planner.model import ModelSpec
from planner.placement import Placement
from planner.replica import EXPECTATION, Shares, Situation, find_rule, static, table_draws
from planner.replica.registry import RULES
from planner.replica.static import static_table
from tests.planner.small import Ints, random_row, small_model

TWO_BY_FOUR = np.repeat([0, 1], 4)


@st.composite
def placements(draw: st.DrawFn) -> tuple[Placement, ModelSpec, Ints]:
    """A placement, its model (a dense layer, two MoE layers, a draft layer) and node_G of nodes that need not be equal."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    experts = draw(st.integers(1, 6))
    gpus = sum(sizes)
    slots_per_gpu = draw(st.integers(-(-experts // gpus), experts))
    model = small_model(experts, layers=3, moe_layer_ids=(1, 2), draft_layer_ids=(3,))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = [random_row(rng, experts, gpus, slots_per_gpu) for _ in model.placed_layer_ids]
    return (
        Placement(np.array(rows), model.placed_layer_ids, gpus),
        model,
        np.repeat(np.arange(len(sizes)), sizes),
    )


def shares(rule: str, placement: Placement, model: ModelSpec, node_G: Ints) -> Iterator[Shares]:
    return RULES[rule](placement, Situation(model, node_G))


def served(rule: str, row: list[int], node_G: Ints, experts: int, expert: int) -> list[float]:
    """How many source ranks each replica of an expert serves, in slot order."""
    placement = Placement(np.array([row]), (0,), len(node_G))
    share_SP = next(shares(rule, placement, small_model(experts), node_G))
    share_GP = np.broadcast_to(share_SP, (len(node_G), len(row)))
    return [float(share) for share in share_GP.sum(axis=0)[np.array(row) == expert]]


@pytest.mark.parametrize("rule", RULES)
@given(case=placements())
def test_shares_over_the_replicas_of_an_expert_sum_to_one(
    rule: str, case: tuple[Placement, ModelSpec, Ints]
) -> None:
    """For every source, layer and expert, the draft layer included."""
    placement, model, node_G = case
    for expert_P, share_SP in zip(placement.expert_LP, shares(rule, placement, model, node_G), strict=True):
        assert len(share_SP) in {1, placement.gpus}
        for share_P in share_SP:
            assert share_P.min() >= 0
            assert np.bincount(expert_P, share_P, model.experts).tolist() == pytest.approx(
                [1.0] * model.experts
            )


@pytest.mark.parametrize("rule", ["nearest", "nearest-static"])
def test_sglang_serves_a_node_from_its_first_replica(rule: str) -> None:
    """Replicas on GPUs 0, 4 and 7 of two nodes of four serve 4 : 3 : 1 ranks; on GPUs 0, 1, 2 and 4 it is 2 : 1 : 1 : 4. SGLang 0.5.23 does the same."""
    assert served(rule, [0, 1, 2, 3, 4, 5, 6, 7, 0, 8, 9, 10, 11, 12, 0, 13], TWO_BY_FOUR, 14, 0) == [4, 3, 1]
    assert served(rule, [0, 1, 0, 2, 0, 3, 4, 5, 0, 6, 7, 8, 9, 10, 11, 12], TWO_BY_FOUR, 13, 0) == [
        2,
        1,
        1,
        4,
    ]


def test_even_serves_evenly() -> None:
    """The same map under `even`: a third each of eight ranks."""
    assert served(
        "even", [0, 1, 2, 3, 4, 5, 6, 7, 0, 8, 9, 10, 11, 12, 0, 13], TWO_BY_FOUR, 14, 0
    ) == pytest.approx([8 / 3] * 3)


@given(case=placements())
def test_nearest_static_is_the_table(case: tuple[Placement, ModelSpec, Ints]) -> None:
    """All of a source's tokens for an expert go to the slot that the table names, and that slot holds the expert."""
    placement, model, node_G = case
    slot_GLE = static_table(placement, model, node_G)
    for layer, share_GP in enumerate(shares("nearest-static", placement, model, node_G)):
        for rank, expert in np.ndindex(placement.gpus, model.experts):
            slot = slot_GLE[rank, layer, expert]
            assert placement.expert_LP[layer, slot] == expert
            assert share_GP[rank, slot] == 1


@given(case=placements())
def test_the_table_chooses_among_the_candidates_of_its_expectation(
    case: tuple[Placement, ModelSpec, Ints],
) -> None:
    """In the mapped layers a rank never goes where `nearest` has no share; a draft layer is served by the first slot of each expert."""
    placement, model, node_G = case
    expected = list(shares("nearest", placement, model, node_G))
    chosen = list(shares("nearest-static", placement, model, node_G))
    for expected_GP, chosen_GP in list(zip(expected, chosen, strict=True))[: len(model.moe_layer_ids)]:
        assert (expected_GP[chosen_GP > 0] > 0).all()
    draft_P = placement.expert_LP[-1].tolist()
    assert all(chosen[-1][:, draft_P.index(expert)].all() for expert in range(model.experts))


@given(case=placements())
def test_on_one_node_nearest_loads_slots_evenly(case: tuple[Placement, ModelSpec, Ints]) -> None:
    """Own copies first and a fair draw for the rest come to the same load for every replica."""
    placement, model, node_G = case
    one_node_G = np.zeros_like(node_G)
    for expert_P, share_GP in zip(
        placement.expert_LP, shares("nearest", placement, model, one_node_G), strict=True
    ):
        replicas_E = np.bincount(expert_P, minlength=model.experts)
        assert share_GP.sum(axis=0).tolist() == pytest.approx(
            (placement.gpus / replicas_E[expert_P]).tolist()
        )


@pytest.mark.parametrize("holders", [(0,), (0, 3), (1, 4), (0, 2, 5), (0, 2, 4, 6)])
def test_replicas_on_distinct_equal_nodes_are_loaded_evenly(holders: tuple[int, ...]) -> None:
    """Four nodes of two GPUs, one replica on each of some nodes: those without one draw fairly."""
    row = [0 if gpu in holders else 1 + gpu for gpu in range(8)]
    assert served("nearest", row, np.repeat(np.arange(4), 2), 9, 0) == pytest.approx(
        [8 / len(holders)] * len(holders)
    )


def test_own_gpu_before_own_node_before_the_rest() -> None:
    """Experts 0 and 1 on GPUs 0, 1, 2 of two nodes of two: what each rank does with each of them, by hand."""
    placement = Placement(np.array([[0, 2, 1, 0, 1, 3, 4, 5]]), (0,), 4)
    share_GP = next(shares("nearest", placement, small_model(6), np.array([0, 0, 1, 1])))
    assert share_GP[:, [0, 3]].tolist() == [[1, 0], [0, 1], [0.5, 0.5], [0.5, 0.5]]
    assert share_GP[:, [2, 4]].tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]


def test_fair_choices_are_fair() -> None:
    """Seven picks among three: two of each, and one more for one of them, in the order that Python's generator draws."""
    picks = static._fair_choices([10, 20, 30], 7, random.Random(42))
    assert sorted(picks.count(slot) for slot in (10, 20, 30)) == [2, 2, 3]
    assert picks == [10, 20, 30, 20, 30, 30, 10]


def test_two_copies_on_a_gpu_are_one() -> None:
    """The judge refuses it, but a map may say so: SGLang uses the first on the own GPU."""
    placement = Placement(np.array([[0, 0, 1, 2, 0, 3]]), (0,), 3)
    share_GP = next(shares("nearest", placement, small_model(4), np.array([0, 0, 0])))
    assert share_GP[0, [0, 1]].tolist() == [1, 0]


@given(case=placements())
def test_table_draws_is_an_upper_bound(case: tuple[Placement, ModelSpec, Ints]) -> None:
    """No table is longer in the making than was foreseen."""
    placement, model, node_G = case
    drawn = 0
    original = static._fair_choices

    def counted(candidates: list[int], count: int, stream: Any) -> list[int]:
        nonlocal drawn
        drawn += count
        return original(candidates, count, stream)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(static, "_fair_choices", counted)
        static_table(placement, model, node_G)
    assert drawn <= table_draws(placement, model)


def test_a_table_too_long_to_make_falls_back_to_its_expectation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ranks of the second node draw between two far replicas; past the limit they get half of each."""
    placement = Placement(np.array([[0, 1, 0, 2, 3, 4, 5, 6]]), (0,), 4)
    node_G = np.array([0, 0, 1, 1])
    exact, expected = (
        next(shares(rule, placement, small_model(7), node_G)) for rule in ("nearest-static", "nearest")
    )
    assert set(exact[2, [0, 2]]) == {0, 1}
    monkeypatch.setattr(static, "LARGEST_EXACT_TABLE", 0)
    assert (next(shares("nearest-static", placement, small_model(7), node_G)) == expected).all()
    assert expected[2, [0, 2]].tolist() == [0.5, 0.5]


def test_dynamic_draws_where_static_drew_and_has_no_map_for_draft_layers() -> None:
    """Its shares are the expectation's; a draft layer uses the first slot of each expert."""
    model = small_model(3, layers=1, draft_layer_ids=(1,))
    placement = Placement(np.array([[0, 1, 0, 2], [0, 1, 0, 2]]), (0, 1), 4)
    mapped, draft = shares("nearest-dynamic", placement, model, np.array([0, 0, 0, 0]))
    assert mapped[:, [0, 2]].tolist() == [[1, 0], [0.5, 0.5], [0, 1], [0.5, 0.5]]
    assert draft.tolist() == [[1, 1, 0, 1]]


def test_fixed_by_source_goes_round_the_ranks() -> None:
    """Five ranks, two replicas: ranks 0, 2, 4 use the first, 1 and 3 the second. Three replicas: 2 : 2 : 1."""
    assert served("fixed-by-source", [0, 0, 1, 2, 3], np.zeros(5, dtype=np.int64), 4, 0) == [3, 2]
    assert served("fixed-by-source", [0, 1, 0, 2, 0], np.zeros(5, dtype=np.int64), 3, 0) == [2, 2, 1]


def test_a_stand_in_for_search_is_itself_followed_to_the_letter() -> None:
    """No chain of stand-ins, and none for a rule that is cheap and skewed by the batch, or whose traffic is not that of even shares."""
    assert set(EXPECTATION) <= set(RULES)
    assert set(EXPECTATION.values()) == {"even", "nearest"}
    assert not {"hashed", "fixed-by-source"} & set(EXPECTATION)


@pytest.mark.parametrize(("tokens", "load_share_LE"), [(0, None), (1, np.ones((2, 4)) / 4)])
def test_a_situation_that_fits_no_model_is_our_fault(tokens: int, load_share_LE: Shares | None) -> None:
    """No tokens, or a load with a row too many."""
    with pytest.raises(ValueError, match=r"at least 1|a row for every placed layer"):
        Situation(small_model(), np.zeros(2, dtype=np.int64), tokens, load_share_LE)


def test_an_unknown_rule_is_refused_by_name() -> None:
    """With the known ones beside it."""
    known = (
        "even, nearest, nearest-static, nearest-dynamic, row-index, lp, hashed, round-robin, fixed-by-source"
    )
    with pytest.raises(BadInput, match=f"'closest' is unknown; known are {known}"):
        find_rule("closest")
