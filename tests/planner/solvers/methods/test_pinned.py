"""`pinned`: groups stay whole on a node, shared out as well as can be."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.problem import Problem, violations
from planner.solvers import find_candidates, find_method
from tests.strategies import problem_of


def grouped(loads: list[list[int]], groups: int, nodes: int, gpus: int, slots_per_gpu: int) -> Problem:
    problem = problem_of(loads, gpus=gpus, slots_per_gpu=slots_per_gpu, nodes=nodes)
    return replace(problem, model=replace(problem.model, expert_groups=groups))


def nodes_of_groups(problem: Problem) -> np.ndarray:
    """[layers, groups]: the node that holds the group's experts; AssertionError where one is elsewhere."""
    placement = find_method("pinned")(problem)
    node_P = np.repeat(problem.node_G, problem.slots_per_gpu)
    size = problem.model.experts // problem.model.expert_groups
    found = []
    for expert_P in placement.expert_LP:
        held = [
            sorted(set(node_P[expert_P // size == group].tolist()))
            for group in range(problem.model.expert_groups)
        ]
        assert all(len(nodes) == 1 for nodes in held)
        found.append([nodes[0] for nodes in held])
    return np.array(found)


@settings(max_examples=25)
@given(seed=st.integers(0, 1000))
def test_the_division_is_the_best_there_is(seed: int) -> None:
    """4 groups on 2 nodes: no other pairing has a less loaded busiest node."""
    loads = np.random.default_rng(seed).integers(1, 100, (2, 8)).tolist()
    problem = grouped(loads, groups=4, nodes=2, gpus=4, slots_per_gpu=3)
    load_LU = np.array(loads).reshape(2, 4, 2).sum(axis=2)
    for node_U, load_U in zip(nodes_of_groups(problem), load_LU, strict=True):
        best = min(
            max(load_U[list(order[:2])].sum(), load_U[list(order[2:])].sum())
            for order in permutations(range(4))
        )
        assert max(load_U[node_U == node].sum() for node in range(2)) == best


@settings(max_examples=25)
@given(
    seed=st.integers(0, 1000),
    shape=st.sampled_from([(4, 2, 4, 5), (8, 4, 8, 2), (16, 2, 4, 8), (2, 2, 2, 8)]),
)
def test_breaks_no_rule(seed: int, shape: tuple[int, int, int, int]) -> None:
    """Many groups or few, one GPU a node or more."""
    groups, nodes, gpus, slots_per_gpu = shape
    problem = grouped(
        np.random.default_rng(seed).integers(0, 100, (2, 16)).tolist(), groups, nodes, gpus, slots_per_gpu
    )
    assert violations(problem, find_method("pinned")(problem)) == []
    nodes_of_groups(problem)


def test_too_many_divisions_are_dealt() -> None:
    """16 groups on 2 nodes are 6,435 divisions, 24 groups too many to look at all: both end near even."""
    for groups in (16, 24):
        loads = np.random.default_rng(1).integers(50, 100, (1, 48)).tolist()
        problem = grouped(loads, groups, nodes=2, gpus=4, slots_per_gpu=12)
        node_U = nodes_of_groups(problem)[0]
        load_U = np.array(loads[0]).reshape(groups, -1).sum(axis=1)
        assert load_U[node_U == 0].sum() == pytest.approx(load_U.sum() / 2, rel=0.02)


@pytest.mark.parametrize(
    "problem",
    [grouped([[1] * 8], 1, 2, 4, 3), grouped([[1] * 8], 4, 1, 4, 3), grouped([[1] * 9], 3, 2, 4, 3)],
)
def test_where_groups_cannot_be_pinned_auto_is_offered_nothing(problem: Problem) -> None:
    """No groups, one node, or groups that do not divide: the method answers as refine does, and is no
    candidate.
    """
    assert list(find_candidates("pinned")(problem)) == []
    assert (
        find_method("pinned")(problem).expert_LP.tolist() == find_method("refine")(problem).expert_LP.tolist()
    )
