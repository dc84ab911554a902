"""Plans against all 978 placements of four experts in eight slots, under the whole objective.

Two nodes of two GPUs, rules, transports, traces, replicas.
"""

import numpy as np
import pytest

from planner.plan import Origin, Plan
from planner.planning import make_plan
from planner.problem import Problem
from planner.solvers import Search, Workforce
from tests.planner.tiny import price_all, tiny_problem

CLOSE = 0.03  # of plain `auto` to the best placement; eight slots leave no finer steps


def asked(rule: str, transport: str, seed: int, traced_tokens: int = 0) -> Problem:
    return tiny_problem(
        "leaf-spine" if seed % 2 else "two-nodes", 4, 2, 2, rule, transport, 600, traced_tokens, seed
    )


def planned(problem: Problem, *, prove: bool = False) -> Plan:
    return make_plan(
        lambda _: problem, problem.redundant, Search("auto", prove=prove, workforce=Workforce(1)), Origin()
    )


@pytest.mark.parametrize("transport", ["slot", "rank", "node"])
@pytest.mark.parametrize("rule", ["even", "nearest", "hashed", "round-robin", "fixed-by-source"])
def test_a_proven_plan_is_the_best_of_all(rule: str, transport: str) -> None:
    """`--prove` says optimal, and its step is that of the best placement.

    Where messages depend on it, for what a trace says.
    """
    for seed, traced_tokens in ((3, 0), (0, 0)) if transport == "slot" else ((0, 40),):
        problem = asked(rule, transport, seed, traced_tokens)
        plan = planned(problem, prove=True)
        assert plan.optimal_L.tolist() == [True]
        assert plan.fitted.total_seconds == pytest.approx(price_all(problem).layer_seconds_L.min(), rel=1e-9)


@pytest.mark.parametrize("rule", ["even", "nearest", "hashed", "round-robin"])
def test_a_plan_without_proof_is_close(rule: str) -> None:
    """Four loads; one of them holds an expert with five sixths of all tokens, which belongs on every GPU
    under any rule.
    """
    for seed in range(4):
        problem = asked(rule, "slot", seed)
        assert planned(problem).fitted.total_seconds <= price_all(problem).layer_seconds_L.min() * (1 + CLOSE)


def test_the_rule_that_fixes_replicas_by_source_is_compared_by_its_own_traffic() -> None:
    """Even shares cannot tell these rows apart, whose dispatch differs by two thirds.

    The best of the candidates is taken.
    """
    problem = asked("fixed-by-source", "slot", 0, 40)
    plan = planned(problem)
    assert plan.fitted.total_seconds == pytest.approx(
        price_all(problem, np.array([[0, 1, 0, 1, 2, 3, 2, 3]])).total_seconds, rel=1e-9
    )
    assert (
        price_all(problem, np.array([[0, 1, 2, 3, 0, 1, 2, 3]])).total_seconds
        > plan.fitted.total_seconds * 1.1
    )
