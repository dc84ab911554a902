"""What every method owes: no rule broken, the same bytes twice, and its place in the order of quality."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

from planner.base import BadInput
from planner.problem import Problem, violations
from planner.solvers import find_method, peaks
from planner.solvers.registry import method_names
from tests.strategies import problem_of, problems, surviving_problems

QUICK = [
    name for name in method_names() if name not in ("auto", "cpsat")
]  # the other two run CP-SAT: seconds, not milliseconds


def peak_L(problem: Problem, name: str) -> np.ndarray:
    return peaks(problem.shares_LE, find_method(name)(problem).expert_LP, problem.gpus)


@pytest.mark.parametrize("name", QUICK)
@given(problem=problems())
def test_breaks_no_rule(name: str, problem: Problem) -> None:
    """Every answer to every feasible problem passes the judge."""
    assert violations(problem, find_method(name)(problem)) == []


@pytest.mark.parametrize("name", QUICK)
@given(problem=surviving_problems())
def test_survives_what_the_problem_asks(name: str, problem: Problem) -> None:
    """Any GPUs, or any node, lost: the judge takes every answer, on equal and unequal nodes."""
    assert violations(problem, find_method(name)(problem)) == []


@pytest.mark.parametrize("name", ["auto", "cpsat"])
@settings(max_examples=12)
@given(problem=surviving_problems(most_experts=4))
def test_exact_methods_survive_what_the_problem_asks(name: str, problem: Problem) -> None:
    """The same of the methods that run CP-SAT."""
    assert violations(problem, find_method(name)(problem)) == []


@pytest.mark.parametrize("name", ["auto", "cpsat"])
@settings(max_examples=12)
@given(problem=problems(most_experts=5))
def test_exact_methods_break_no_rule(name: str, problem: Problem) -> None:
    """The same of the methods that run CP-SAT, on fewer and smaller problems."""
    assert violations(problem, find_method(name)(problem)) == []


@pytest.mark.parametrize("name", method_names())
def test_same_bytes_twice(name: str) -> None:
    """Same problem and seed, same placement, also where CP-SAT works under its deterministic limit."""
    problem = problem_of(np.random.default_rng(3).integers(1, 1000, (2, 6)).tolist(), gpus=3, slots_per_gpu=3)
    first, second = (find_method(name)(problem, seed=5).expert_LP.tobytes() for _ in range(2))
    assert first == second


@given(problem=problems())
def test_refine_is_never_worse_than_greedy(problem: Problem) -> None:
    """In no layer."""
    assert (peak_L(problem, "refine") <= peak_L(problem, "greedy") * (1 + 1e-12)).all()


@settings(max_examples=12)
@given(problem=problems(most_experts=5))
def test_auto_is_never_worse_than_its_parts(problem: Problem) -> None:
    """In no layer, and cpsat is never worse than refine, which it starts from."""
    best_L = np.minimum.reduce([peak_L(problem, name) for name in ("linear", "greedy", "refine", "cpsat")])
    assert (peak_L(problem, "auto") <= best_L * (1 + 1e-12)).all()
    assert (peak_L(problem, "cpsat") <= peak_L(problem, "refine") * (1 + 1e-12)).all()


@given(problem=problems(rules=["even"]))
def test_greedy_has_the_smallest_largest_replica(problem: Problem) -> None:
    """No other count of replicas, linear's among them, has a smaller largest replica."""
    largest = {}
    for name in ("greedy", "linear"):
        replicas_LE = find_method(name)(problem).replicas_LE(problem.model.experts)
        largest[name] = (problem.shares_LE / replicas_LE).max(axis=1)
    assert (largest["greedy"] <= largest["linear"] * (1 + 1e-6)).all()


@pytest.mark.parametrize("name", ["greedy", "refine", "cpsat", "auto"])
def test_replicas_share_no_gpu_on_even_load(name: str) -> None:
    """8 experts of equal load, 12 slots, 4 GPUs: the published policy doubled an expert on every GPU
    (deepseek-ai/EPLB issue 22); all GPUs can be even.
    """
    problem = problem_of([[5] * 8], gpus=4, slots_per_gpu=3)
    placement = find_method(name)(problem)
    assert violations(problem, placement) == []
    assert peaks(problem.shares_LE, placement.expert_LP, 4)[0] == pytest.approx(1 / 4)


@pytest.mark.parametrize("name", ["greedy", "refine", "cpsat", "auto"])
def test_replicas_never_outnumber_gpus(name: str) -> None:
    """One expert with nearly all the load on 4 GPUs: 4 replicas, not 5, and max/mean 251/250.75."""
    problem = problem_of([[1000, 1, 1, 1]], gpus=4, slots_per_gpu=2)
    placement = find_method(name)(problem)
    assert placement.replicas_LE(4)[0, 0] == 4
    assert peaks(problem.shares_LE, placement.expert_LP, 4)[0] * 4 == pytest.approx(251 / 250.75)


@pytest.mark.parametrize("name", method_names())
def test_layer_without_signal_is_even(name: str) -> None:
    """No assignment recorded in a layer: every expert gets its equal share of the slots."""
    problem = problem_of([[0] * 8, [8, 7, 6, 5, 4, 3, 2, 1]], gpus=4, slots_per_gpu=4)
    assert find_method(name)(problem).replicas_LE(8)[0].tolist() == [2] * 8


def test_auto_follows_the_score_it_is_given() -> None:
    """A score that likes high peaks keeps the baseline's rows."""
    from planner.solvers.methods import auto

    problem = problem_of([[900, 1, 1, 1], [5, 1, 1, 1]], gpus=2, slots_per_gpu=3)
    worst = auto.solve(problem, score=lambda placement: -peaks(problem.shares_LE, placement.expert_LP, 2))
    assert worst.expert_LP.tolist() == find_method("linear")(problem).expert_LP.tolist()


def test_budget_of_nothing_still_answers() -> None:
    """A wall-clock limit that is over at once leaves a valid placement."""
    problem = problem_of(
        np.random.default_rng(3).integers(1, 1000, (2, 10)).tolist(), gpus=4, slots_per_gpu=4
    )
    for name in method_names():
        assert violations(problem, find_method(name)(problem, budget_seconds=0.0)) == []


def test_unknown_method_names_the_nearest() -> None:
    """A misspelt method is refused with the one that was meant."""
    with pytest.raises(BadInput, match="'gredy' is unknown; did you mean 'greedy'"):
        find_method("gredy")


def test_finding_methods_loads_no_solver() -> None:
    """Listing the methods, and greedy, leave OR-Tools unloaded."""
    code = (
        "import sys; from planner.solvers import find_method; find_method('greedy'); "
        "print('ortools' in sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
        ).stdout
        == "False\n"
    )
