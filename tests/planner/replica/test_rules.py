"""Replica rules: every assignment goes somewhere, and to the slot that the engine's words name."""

import numpy as np
import pytest
from hypothesis import given

from planner.base import BadInput
from planner.model import ModelSpec
from planner.placement import Placement
from planner.replica import EXPECTATION, Shares, Situation, find_rule
from planner.replica.registry import RULES
from tests.planner.replica.placements import placements, served, shares
from tests.planner.small import Ints, small_model

TWO_BY_FOUR = np.repeat([0, 1], 4)


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
    """Replicas on GPUs 0, 4 and 7 of two nodes of four serve 4 : 3 : 1 ranks.

    On GPUs 0, 1, 2 and 4 it is 2 : 1 : 1 : 4. SGLang 0.5.23 does the same.
    """
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


def test_two_copies_on_a_gpu_are_one() -> None:
    """The judge refuses it, but a map may say so: SGLang uses the first on the own GPU."""
    placement = Placement(np.array([[0, 0, 1, 2, 0, 3]]), (0,), 3)
    share_GP = next(shares("nearest", placement, small_model(4), np.array([0, 0, 0])))
    assert share_GP[0, [0, 1]].tolist() == [1, 0]


def test_dynamic_draws_where_static_drew_and_has_no_map_for_draft_layers() -> None:
    """Its shares are the expectation's; a draft layer uses the first slot of each expert."""
    model = small_model(3, layers=1, draft_layer_ids=(1,))
    placement = Placement(np.array([[0, 1, 0, 2], [0, 1, 0, 2]]), (0, 1), 4)
    mapped, draft = shares("nearest-dynamic", placement, model, np.array([0, 0, 0, 0]))
    assert mapped[:, [0, 2]].tolist() == [[1, 0], [0.5, 0.5], [0, 1], [0.5, 0.5]]
    assert draft.tolist() == [[1, 1, 0, 1]]


def test_fixed_by_source_goes_round_the_ranks() -> None:
    """Five ranks, two replicas: ranks 0, 2, 4 use the first, 1 and 3 the second.

    Three replicas: 2 : 2 : 1.
    """
    assert served("fixed-by-source", [0, 0, 1, 2, 3], np.zeros(5, dtype=np.int64), 4, 0) == [3, 2]
    assert served("fixed-by-source", [0, 1, 0, 2, 0], np.zeros(5, dtype=np.int64), 3, 0) == [2, 2, 1]


def test_a_stand_in_for_search_is_itself_followed_to_the_letter() -> None:
    """No chain of stand-ins, and none for a rule that is cheap and skewed by the batch, or whose traffic is
    not that of even shares.
    """
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
