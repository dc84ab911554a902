"""`remote`: what it is for, and that it is never worse than where it starts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from planner.bench.frame import Instance, synthetic_problem
from planner.bounds import time_bound
from planner.cost import cost
from planner.problem import Problem, Workload, violations
from planner.solvers import find_method
from planner.solvers.methods.remote import everywhere
from tests.strategies import problems

SMALL = Instance("2x64 -> 80 / 16 GPUs, 2 nodes", 2, 64, 5, "hgx-h100:2")


def asked(rule: str = "nearest", tokens: int = 128) -> Problem:
    return replace(
        synthetic_problem(SMALL, replica_rule=rule),
        workload=Workload(tokens, "decode", "fp8", "bf16", "slot"),
    )


def test_nics_are_balanced_where_they_are_waited_for() -> None:
    """In a decode step over two nodes: less time than balancing all assignments, and within 7 % of the bound,
    which `refine` is not.
    """
    problem = asked()
    seconds = {name: cost(problem, find_method(name)(problem)).total_seconds for name in ("refine", "remote")}
    bound = time_bound(problem).total_seconds
    assert seconds["remote"] < 0.95 * seconds["refine"]
    assert bound <= seconds["remote"] <= 1.07 * bound < seconds["refine"]


@settings(max_examples=25)
@given(problem=problems())
def test_valid_and_never_slower_than_greedy(problem: Problem) -> None:
    """Any nodes and rule: a placement that keeps the rules, predicted no slower than greedy's, the same
    twice.
    """
    found = find_method("remote")(problem)
    assert violations(problem, found) == []
    assert (
        cost(problem, found).layer_seconds_L
        <= cost(problem, find_method("greedy")(problem)).layer_seconds_L * (1 + 1e-12)
    ).all()
    assert found.expert_LP.tolist() == find_method("remote")(problem).expert_LP.tolist()


def test_without_near_replicas_it_is_greedy() -> None:
    """Under `even` every assignment crosses as likely as any other."""
    problem = asked("even")
    assert (
        find_method("remote")(problem).expert_LP.tolist() == find_method("greedy")(problem).expert_LP.tolist()
    )


@pytest.mark.parametrize(
    ("extra", "expected"), [(0, [1, 1, 1]), (1, [1, 2, 1]), (3, [1, 3, 2]), (6, [3, 3, 3])]
)
def test_the_hottest_expert_fills_the_nodes_first(extra: int, expected: list[int]) -> None:
    """Three experts, three nodes; equal loads fall by id."""
    assert everywhere(np.array([[1.0, 9.0, 4.0]]), extra, 3).tolist() == [expected]
