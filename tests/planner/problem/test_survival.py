"""Survival against the plain definition: take every loss away, and look whether an expert is gone."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from planner.base import BadInput, Infeasible
from planner.placement import Placement
from planner.problem import (
    Problem,
    Survival,
    held_places_LE,
    loss_sets,
    lost_experts,
    parse_survival,
    violations,
)
from planner.problem.survival import least_slots_per_gpu, least_slots_replaced
from tests.planner.small import every_row, random_row
from tests.strategies import machine_of, problem_of, survivals


def outlives(expert_P: np.ndarray, survive: Survival, node_G: np.ndarray, experts: int) -> bool:
    """The definition: no loss leaves an expert without a slot."""
    return all(
        len(lost_experts(expert_P, np.isin(np.arange(len(node_G)), lost), experts)) == 0
        for lost in loss_sets(survive, node_G)
    )


@given(
    survive=survivals(),
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    experts=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_an_expert_survives_where_it_has_a_slot_at_one_place_more_than_are_lost(
    survive: Survival, sizes: list[int], experts: int, seed: int
) -> None:
    """The law that the judge uses agrees with the definition on random rows."""
    node_G = np.repeat(np.arange(len(sizes)), sizes)
    draw = np.random.default_rng(seed)
    slots = int(draw.integers(-(-experts // len(node_G)), experts + 1))
    row_P = random_row(draw, experts, len(node_G), slots)
    held_E = held_places_LE(row_P[None], survive.place_G(node_G), experts)[0]
    assume(
        int(survive.place_G(node_G).max()) + 1 >= survive.losses
    )  # fewer places than would be lost: there is no such loss
    assert bool((held_E >= survive.least_replicas).all()) == outlives(row_P, survive, node_G, experts)


def is_the_least(
    law: Callable[[Survival, int, Any], int],
    possible: Callable[[int], bool],
    survive: Survival,
    experts: int,
    node_G: Any,
) -> int | None:
    """The law's slots a GPU: possible, and one fewer is not; None where too few places refuse it."""
    if len(set(survive.place_G(node_G).tolist())) < survive.least_replicas:
        with pytest.raises(Infeasible, match="surviving any"):
            law(survive, experts, node_G)
        return None
    least = law(survive, experts, node_G)
    assert possible(least)
    assert not possible(least - 1)
    return least


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (2, 2), (1, 1, 1), (3,), (3, 1)])
@pytest.mark.parametrize("survive", [Survival(gpus=1), Survival(gpus=2), Survival(node=True)], ids=str)
@pytest.mark.parametrize("experts", [2, 3])
def test_the_fewest_slots_are_the_fewest_of_all_placements(
    survive: Survival, sizes: tuple[int, ...], experts: int
) -> None:
    """Every placement of that many slots and of one less is looked at.

    The first has a survivor, the second has none.
    """
    node_G = np.repeat(np.arange(len(sizes)), sizes)
    gpus = len(node_G)

    def possible(slots: int) -> bool:
        if not -(-experts // gpus) <= slots <= experts:
            return False
        return any(
            outlives(row_GS.ravel(), survive, node_G, experts) for row_GS in every_row(experts, gpus, slots)
        )

    is_the_least(least_slots_per_gpu, possible, survive, experts, node_G)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (2, 2), (1, 1, 1), (3,), (3, 1), (4, 2, 1)])
@pytest.mark.parametrize("survive", [Survival(gpus=1), Survival(gpus=2), Survival(node=True)], ids=str)
@pytest.mark.parametrize("experts", [1, 2, 3, 7])
def test_experts_placed_anew_need_slots_on_the_gpus_left(
    survive: Survival, sizes: tuple[int, ...], experts: int
) -> None:
    """Each loss is looked at: whether all experts can be dealt out to what it leaves, none twice to a GPU.

    It never takes more slots than an engine needs that leaves experts where they are.
    """
    node_G = np.repeat(np.arange(len(sizes)), sizes)

    def possible(slots: int) -> bool:
        return all(
            (len(node_G) - len(lost)) * min(slots, experts) >= experts for lost in loss_sets(survive, node_G)
        )

    least = is_the_least(least_slots_replaced, possible, survive, experts, node_G)
    assert least is None or least <= least_slots_per_gpu(survive, experts, node_G)


def test_losses_are_all_sets_of_gpus_or_all_nodes() -> None:
    """Five GPUs on two nodes."""
    node_G = np.array([0, 0, 0, 1, 1])
    assert list(loss_sets(Survival(gpus=2), node_G)) == list(combinations(range(5), 2))
    assert list(loss_sets(Survival(node=True), node_G)) == [(0, 1, 2), (3, 4)]


@pytest.mark.parametrize("text", ["0", "-1", "nodes", "", "1.5", "9999999999"])
def test_losses_that_cannot_be_read(text: str) -> None:
    """One line that says what to write."""
    with pytest.raises(BadInput, match="give the number of GPUs that may be lost at once"):
        parse_survival(text)


def test_the_judge_names_layer_expert_and_gpus() -> None:
    """Expert 0 has both slots on node 0: it outlives a GPU, not a node."""
    problem = replace(
        problem_of([[4, 1, 1, 1]], gpus=4, slots_per_gpu=3, nodes=2), survive=Survival(node=True)
    )
    row = [0, 1, 2, 0, 1, 3, 1, 2, 3, 1, 2, 3]
    (found,) = violations(problem, Placement(np.array([row]), (0,), 4))
    assert (found.rule, found.layer, found.gpu, found.expert) == ("survive", 0, 0, 0)
    assert "expert 0 would not survive the loss of any one node, its slots are all on one node" in found.text
    assert violations(replace(problem, survive=Survival(gpus=1)), Placement(np.array([row]), (0,), 4)) == []


def test_too_few_slots_name_the_smallest_r_and_what_fits() -> None:
    """Eight experts on four GPUs: 16 slots survive a GPU, so R is 8."""
    named = r"--redundant 8, 4 slots a GPU; memory fits \d+ slots"
    with pytest.raises(
        Infeasible, match=rf"R = 4 cannot survive the loss of any 1 GPU: .* {named}"
    ) as caught:
        asked(slots_per_gpu=3, survive=Survival(gpus=1))
    assert "\n" not in str(caught.value)
    assert asked(slots_per_gpu=4, survive=Survival(gpus=1)).redundant == 8
    assert "places experts anew after a loss needs R = 4, without --survive" in str(caught.value)


def test_one_node_cannot_survive_itself() -> None:
    """Nor four GPUs the loss of four."""
    with pytest.raises(Infeasible, match="needs at least 2 nodes, the topology has 1 node"):
        asked(slots_per_gpu=8, survive=Survival(node=True))
    with pytest.raises(
        Infeasible, match="needs at least 5 GPUs, the topology has 4 GPUs; at most --survive 3"
    ):
        asked(slots_per_gpu=8, survive=Survival(gpus=4))


def test_uneven_nodes_need_more_slots() -> None:
    """Seven GPUs beside one: the lone GPU must hold every expert."""
    assert least_slots_per_gpu(Survival(node=True), 8, machine_of([7, 1]).node_G) == 8


def asked(slots_per_gpu: int, survive: Survival) -> Problem:
    return replace(problem_of([[1] * 8], gpus=4, slots_per_gpu=slots_per_gpu), survive=survive)
