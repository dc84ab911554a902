"""Islands of GPUs that share experts, and what weights on replicas reach."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import Infeasible
from planner.cost import best_split
from planner.load import LoadProfile
from planner.placement import Placement
from planner.plan import Origin, plan_from_dict, plan_to_dict
from planner.planning import make_plan
from planner.problem import Problem, island_LG, violations
from planner.problem.islands import islands_L
from planner.solvers import Search
from tests.planner.small import placed, question, random_row
from tests.strategies import problem_of, problems


def test_islands_by_hand() -> None:
    """GPUs 0 and 2 share expert 0, GPUs 1 and 3 share expert 3; in the other layer a chain joins all four."""
    expert_LP = np.array([[0, 1, 2, 3, 0, 4, 3, 5], [0, 1, 1, 2, 2, 3, 3, 4]])
    assert island_LG(expert_LP, 4).tolist() == [[0, 1, 0, 1], [0, 0, 0, 0]]
    assert islands_L(expert_LP, 4).tolist() == [2, 1]


@given(st.integers(1, 6), st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_islands_are_those_of_a_search(gpus: int, experts: int, seed: int) -> None:
    """The same as walking from GPU to GPU."""
    rng = np.random.default_rng(seed)
    slots_per_gpu = int(rng.integers(-(-experts // gpus), experts + 1))
    row_P = random_row(rng, experts, gpus, slots_per_gpu)
    held = [set(slots.tolist()) for slots in row_P.reshape(gpus, -1)]
    for start in range(gpus):
        reached, edge = {start}, [start]
        while edge:
            near = {other for other in range(gpus) if held[other] & held[edge[-1]]} - reached
            edge.pop()
            reached |= near
            edge += sorted(near)
        assert island_LG(row_P[None], gpus)[0, start] == min(reached)


def test_weights_pass_load_along_the_chain() -> None:
    """Expert 0 is hot in the next window.

    GPU 1, the only one without it, takes over all of experts 1 and 2; an even split leaves GPU 2 with 3 + 1.
    """
    problem = question([4, 4, 4], topology=None, slots_per_gpu=2)
    placement = placed([0, 1, 1, 2, 2, 0, 0, 1], problem)
    after = LoadProfile(np.array([[[9, 1, 2]]], dtype=np.int64), (0,), "made up for tests")
    found = best_split(problem, placement, after)
    assert found.even_max_over_mean == pytest.approx(4 / 3)
    assert found.resplit_max_over_mean == pytest.approx(1)
    assert found.islands_L == (1,)


@given(problem=problems(rules=["even"]), seed=st.integers(0, 2**32 - 1))
def test_knowing_the_window_beats_all_other_weights(problem: Problem, seed: int) -> None:
    """Re-split is never above even split nor above fitted weights; on the fitted load itself fitted weights
    are no worse than even ones.
    """
    rng = np.random.default_rng(seed)
    rows = [
        random_row(rng, problem.model.experts, problem.gpus, problem.slots_per_gpu)
        for _ in problem.model.placed_layer_ids
    ]
    placement = Placement(np.array(rows), problem.model.placed_layer_ids, problem.gpus)
    other = replace(problem.load, tokens_WLE=rng.integers(1, 100, problem.load.tokens_WLE.shape))
    after = best_split(problem, placement, other)
    assert after.resplit_max_over_mean <= min(after.even_max_over_mean, after.static_max_over_mean) * (
        1 + 1e-6
    )
    if problem.load.total_LE.any():
        own = best_split(problem, placement, problem.load)
        assert own.static_max_over_mean <= own.even_max_over_mean * (1 + 1e-6)
        assert own.resplit_max_over_mean >= 1 - 1e-6


def test_fitted_weights_are_fitted_to_all_windows() -> None:
    """The sum of two windows is even already, so weights fitted to it may be anything; fitted to both they
    stay at the even split.
    """
    fitted = LoadProfile(np.array([[[6, 2, 4]], [[2, 6, 4]]], dtype=np.int64), (0,), "made up for tests")
    problem = replace(problem_of([[1, 1, 1]], gpus=3, slots_per_gpu=2), load=fitted)
    placement = placed([0, 1, 1, 2, 2, 0], problem)
    found = best_split(problem, placement, fitted)
    assert found.static_max_over_mean <= found.even_max_over_mean * (1 + 1e-9)


@pytest.mark.parametrize("method", ["linear", "greedy", "refine", "auto"])
@pytest.mark.parametrize("rule", ["even", "nearest-static"])
def test_a_resplittable_plan_is_one_whatever_the_method(method: str, rule: str) -> None:
    """Every layer is one island, and the judge agrees when the file is read back; a plan that was not asked
    for it may have several.
    """
    rng = np.random.default_rng(7)
    asked = problem_of(
        rng.integers(1, 1000, (2, 80)).tolist(), gpus=8, slots_per_gpu=11, nodes=2, rule=rule
    )  # too large for CP-SAT, which takes seconds
    problem = replace(asked, resplittable=True)
    plan = make_plan(lambda _: problem, problem.redundant, Search(method), Origin())
    assert islands_L(plan.placement.expert_LP, 8).tolist() == [1, 1]
    value = json.loads(json.dumps(plan_to_dict(plan)))
    again, placement, _ = plan_from_dict(value, "plan.json")
    assert again.resplittable
    assert violations(again, placement) == []


def test_the_judge_names_a_layer_that_falls_apart() -> None:
    """GPUs 0 and 1 share nothing with GPUs 2 and 3."""
    problem = replace(question([1] * 5, slots_per_gpu=2), resplittable=True)
    found = violations(problem, placed([0, 1, 0, 2, 3, 4, 3, 4], problem))
    assert [(broken.rule, broken.layer, broken.gpu) for broken in found] == [("resplittable", 0, 2)]


@pytest.mark.parametrize(
    ("experts", "gpus", "slots_per_gpu", "least"), [(8, 4, 2, 4), (6, 4, 2, 6), (5, 4, 2, 3)]
)
def test_too_few_replicas_name_the_least_that_will_do(
    experts: int, gpus: int, slots_per_gpu: int, least: int
) -> None:
    """R >= G - 1, and the slots must divide."""
    asked = problem_of([[1] * experts], gpus=gpus, slots_per_gpu=slots_per_gpu)
    if asked.redundant >= gpus - 1:
        assert replace(asked, resplittable=True).redundant == least
        return
    with pytest.raises(Infeasible, match=f"the smallest that divides is --redundant {least}$"):
        replace(asked, resplittable=True)
    assert replace(asked, slots_per_gpu=(experts + least) // gpus, resplittable=True).redundant == least
