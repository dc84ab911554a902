"""CP-SAT against brute force, published optima, and its own limits."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.problem import row_violations
from planner.solvers import pack, peaks, replicate
from planner.solvers.methods.cpsat import patterns, solve_with_bounds
from planner.solvers.methods.cpsat.exact import solve_exact
from planner.solvers.methods.cpsat.fractional import solve_fractional_bound
from planner.solvers.methods.cpsat.integers import Effort
from planner.solvers.methods.cpsat.neighbourhood import improve
from tests.strategies import problem_of

PUBLISHED = np.array(
    [600, 560, 120, 120, 20, 10, 10, 10]
)  # vllm-ascend FlashLB's own example, 8 GPUs x 2 slots


def best_by_trying_all(load_E: list[int], gpus: int, slots_per_gpu: int) -> float:
    """The least peak over every choice of distinct experts for every GPU that covers all experts."""
    best = float("inf")
    for chosen in product(combinations(range(len(load_E)), slots_per_gpu), repeat=gpus):
        replicas = [sum(e in row for row in chosen) for e in range(len(load_E))]
        if min(replicas) > 0:
            best = min(best, max(sum(load_E[e] / replicas[e] for e in row) for row in chosen))
    return best


@settings(max_examples=25)
@given(st.integers(1, 3), st.lists(st.integers(0, 50), min_size=2, max_size=6), st.data())
def test_exact_equals_brute_force(gpus: int, load_E: list[int], data: st.DataObject) -> None:
    """Up to 6 experts on 3 GPUs: the value of the best of all placements, proven."""
    slots_per_gpu = data.draw(st.integers(-(-len(load_E) // gpus), len(load_E)))
    answer = solve_exact(np.array(load_E), gpus, slots_per_gpu)
    best = best_by_trying_all(load_E, gpus, slots_per_gpu)
    assert list(row_violations(answer.expert_P[None], (0,), len(load_E), gpus)) == []
    assert answer.proven
    assert answer.bound == pytest.approx(best)
    assert peaks(np.array([load_E], dtype=float), answer.expert_P[None], gpus)[0] == pytest.approx(best)


def test_published_example_even() -> None:
    """196.667 = 590 / 3 where replicas share evenly: 232 for the common policy, 205 as published."""
    answer = solve_exact(PUBLISHED, 8, 2)
    assert answer.proven
    assert answer.bound == pytest.approx(590 / 3)
    assert peaks(PUBLISHED[None].astype(float), answer.expert_P[None], 8)[0] == pytest.approx(590 / 3)


def test_published_example_fractional() -> None:
    """181.25, the mean, where replicas share as is best."""
    answer = solve_fractional_bound(PUBLISHED, 8, 2)
    assert (answer.proven, answer.bound) == (True, 181.25)
    assert list(row_violations(answer.expert_P[None], (0,), 8, 8)) == []


@settings(max_examples=10)
@given(st.integers(0, 10_000))
def test_fractional_never_exceeds_even(seed: int) -> None:
    """Free shares can only help: their bound is below the even optimum, and never below the mean."""
    load_E = np.random.default_rng(seed).integers(1, 200, 6)
    even, free = solve_exact(load_E, 3, 3), solve_fractional_bound(load_E, 3, 3)
    assert load_E.sum() / 3 * (1 - 1e-9) <= free.bound <= even.bound * (1 + 1e-9)


def test_loads_that_are_not_whole_keep_a_valid_bound() -> None:
    """Shares are rounded down for CP-SAT; the bound still holds for the answer, and meets it within 1e-9."""
    load_E = np.array([1 / 3, 1 / 7, 1 / 5, 0.1, 0.05])
    answer = solve_exact(load_E, 3, 2)
    peak = peaks(load_E[None], answer.expert_P[None], 3)[0]
    assert answer.proven
    assert answer.bound <= peak <= answer.bound * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_eight_experts_on_eight_gpus_are_proven(seed: int) -> None:
    """A model of 8 experts on 8 GPUs with two slots each, within two deterministic seconds.

    The answer is a placement of that value.
    """
    load_E = np.maximum(np.random.default_rng(seed).lognormal(0, 1.2, 8) * 1e4, 1).astype(np.int64)
    answer = solve_exact(load_E, 8, 2, effort=Effort(2.0))
    assert answer.proven
    assert list(row_violations(answer.expert_P[None], (0,), 8, 8)) == []
    assert peaks(load_E[None].astype(float), answer.expert_P[None], 8)[0] == pytest.approx(answer.bound)


@settings(max_examples=10)
@given(st.integers(0, 10_000))
def test_patterns_agree_with_placing_replica_by_replica(seed: int) -> None:
    """Two models of the same layer have the same optimum."""
    load_E = np.random.default_rng(seed).integers(0, 200, 6)
    by_pattern = solve_exact(load_E, 3, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patterns, "MOST_PATTERNS", 0)
        by_replica = solve_exact(load_E, 3, 3)
    assert (by_pattern.proven, by_replica.proven) == (True, True)
    assert by_pattern.bound == pytest.approx(by_replica.bound)


def test_no_time_gives_the_start_unproven() -> None:
    """Where CP-SAT finds nothing the greedy witness is the answer, and it is not called proven."""
    load_E = np.random.default_rng(1).integers(1, 1000, 30)
    answer = solve_exact(load_E, 10, 4, effort=Effort(1e-9))
    assert list(row_violations(answer.expert_P[None], (0,), 30, 10)) == []
    assert not answer.proven
    assert answer.bound <= peaks(load_E[None].astype(float), answer.expert_P[None], 10)[0]


def test_replicas_stay_spread_over_nodes() -> None:
    """With nodes given, two replicas of an expert are on two nodes, also in the proven optimum."""
    load_E = np.array([50, 40, 9, 8, 7, 6])
    answer = solve_exact(load_E, 4, 2, most_per_expert=2, node_G=np.array([0, 0, 1, 1]))
    on_node_NE = np.array([np.bincount(part, minlength=6) for part in answer.expert_P.reshape(2, -1)])
    assert answer.proven
    assert on_node_NE.max() == 1


def test_neighbourhood_improves_a_poor_packing() -> None:
    """A few GPUs at a time, counts fixed: a lower peak, the same replicas, the same answer twice."""
    load_LE = np.random.default_rng(2).lognormal(0, 1, (1, 32))
    replicas_LE = replicate(load_LE, 40, 8)
    poor_P = pack(load_LE, replicas_LE, 8)[0]
    first, second = (
        improve(load_LE[0], poor_P, 8, goal=0.0, rounds=4, effort=Effort(0.05)) for _ in range(2)
    )
    assert first.tolist() == second.tolist()
    assert np.bincount(first).tolist() == replicas_LE[0].tolist()
    assert list(row_violations(first[None], (0,), 32, 8)) == []
    assert peaks(load_LE, first[None], 8)[0] < peaks(load_LE, poor_P[None], 8)[0]


def test_bounds_of_a_whole_problem() -> None:
    """Both layers are solved to proven optimality: the bound meets the peak."""
    problem = problem_of([[600, 560, 120, 120, 20, 10, 10, 10], [0] * 8], gpus=8, slots_per_gpu=2)
    solved = solve_with_bounds(problem)
    peak_L = peaks(problem.shares_LE, solved.placement.expert_LP, 8)
    assert peak_L == pytest.approx(solved.bound_L)
    assert peak_L[0] * PUBLISHED.sum() == pytest.approx(590 / 3)
