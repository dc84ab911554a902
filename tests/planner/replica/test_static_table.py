"""SGLang's static table: one slot for each rank, drawn with its own stream, or its expectation."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from planner.model import ModelSpec
from planner.placement import Placement
from planner.replica import static, table_draws
from planner.replica.static import static_table
from tests.planner.replica.placements import placements, shares
from tests.planner.small import Ints, small_model


@given(case=placements())
def test_nearest_static_is_the_table(case: tuple[Placement, ModelSpec, Ints]) -> None:
    """All of a source's tokens for an expert go to the slot that the table names, and that slot holds the
    expert.
    """
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
    """In the mapped layers a rank never goes where `nearest` has no share.

    A draft layer is served by the first slot of each expert.
    """
    placement, model, node_G = case
    expected = list(shares("nearest", placement, model, node_G))
    chosen = list(shares("nearest-static", placement, model, node_G))
    for expected_GP, chosen_GP in list(zip(expected, chosen, strict=True))[: len(model.moe_layer_ids)]:
        assert (expected_GP[chosen_GP > 0] > 0).all()
    draft_P = placement.expert_LP[-1].tolist()
    assert all(chosen[-1][:, draft_P.index(expert)].all() for expert in range(model.experts))


def test_fair_choices_are_fair() -> None:
    """Seven picks among three.

    Two of each, and one more for one of them, in the order that Python's generator draws.
    """
    picks = static._fair_choices([10, 20, 30], 7, random.Random(42))
    assert sorted(picks.count(slot) for slot in (10, 20, 30)) == [2, 2, 3]
    assert picks == [10, 20, 30, 20, 30, 30, 10]


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
