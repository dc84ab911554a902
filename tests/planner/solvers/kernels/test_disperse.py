"""Dispersal against the plain definition: losses taken one by one, and the busiest GPU that is left."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from planner.placement import Placement
from planner.problem import Problem, Survival, loss_sets, violations
from planner.solvers import disperse, find_method, peaks
from planner.solvers.kernels.after_loss import state_of
from planner.solvers.kernels.disperse import SLACK
from tests.strategies import problem_of, surviving_problems


def worst_after(load_E: np.ndarray, expert_P: np.ndarray, place_G: np.ndarray) -> float:
    """The busiest GPU after the worst loss of one place, counted slot by slot."""
    gpus = len(place_G)
    worst = 0.0
    for place in set(place_G.tolist()):
        alive_GS = expert_P.reshape(gpus, -1)[place_G != place]
        replicas_E = np.bincount(alive_GS.ravel(), minlength=len(load_E))
        worst = max(worst, float((load_E / np.maximum(replicas_E, 1))[alive_GS].sum(axis=1).max()))
    return worst


@given(problem=surviving_problems())
def test_dispersal_keeps_the_rules_the_peak_and_the_worst_loss(problem: Problem) -> None:
    """On every feasible problem: valid, the peak within SLACK, the worst GPU after a loss no higher."""
    assert problem.survive is not None
    before = find_method("refine")(problem)
    place_G = problem.survive.place_G(problem.node_G)
    after_LP = disperse(
        problem.shares_LE, before.expert_LP, place_G, problem.node_G if problem.survive.node else None
    )
    assert violations(problem, Placement(after_LP, before.layer_ids, before.gpus)) == []
    peak_L = peaks(problem.shares_LE, before.expert_LP, problem.gpus)
    assert (peaks(problem.shares_LE, after_LP, problem.gpus) <= peak_L * (1 + SLACK) * (1 + 1e-9)).all()
    for load_E, row_P, old_P in zip(problem.shares_LE, after_LP, before.expert_LP, strict=True):
        assert worst_after(load_E, row_P, place_G) <= worst_after(load_E, old_P, place_G) * (1 + 1e-9)


@given(problem=surviving_problems())
def test_the_table_kept_while_swapping_is_the_definition(problem: Problem) -> None:
    """Loads after a loss as the state has them after its swaps."""
    assert problem.survive is not None
    place_G = problem.survive.place_G(problem.node_G)
    after_LP = disperse(problem.shares_LE, find_method("greedy")(problem).expert_LP, place_G)
    for load_E, row_P in zip(problem.shares_LE, after_LP, strict=True):
        state = state_of(load_E, row_P, place_G, int(place_G.max()) + 1)
        assert state.after_XG.max() == pytest.approx(worst_after(load_E, row_P, place_G))


def test_twins_are_parted() -> None:
    """Eight equal experts twice on four GPUs, as twins: losing one GPU doubles another.

    Dispersed, no GPU carries more than 1.5 times.
    """
    load_E, place_G = np.ones(8), np.arange(4)
    twins_P = np.array([0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7])
    assert worst_after(load_E, twins_P, place_G) == 4.0
    parted_P = disperse(load_E[None], twins_P[None], place_G)[0]
    assert worst_after(load_E, parted_P, place_G) <= 3.0
    assert peaks(load_E[None], parted_P[None], 4)[0] == 2.0
    assert violations_of(parted_P) == []


def violations_of(row_P: np.ndarray) -> list[tuple[int, ...]]:
    """Losses of one GPU that take an expert."""
    gpu_P = np.repeat(np.arange(4), 4)
    return [
        lost
        for lost in loss_sets(Survival(gpus=1), np.zeros(4, dtype=np.int64))
        if len(set(row_P[gpu_P != lost[0]].tolist())) < 8
    ]


def test_dispersal_cuts_what_a_loss_costs_on_a_skewed_load() -> None:
    """64 experts, lognormal, at least twice on 16 GPUs: the excess over the mean of the GPUs left falls by a
    quarter or more, and in every layer.
    """
    loads = np.random.default_rng(0).lognormal(sigma=1.0, size=(3, 64)) * 1000
    problem = replace(
        problem_of(loads.astype(int).tolist(), gpus=16, slots_per_gpu=9), survive=Survival(gpus=1)
    )
    before_LP, place_G = find_method("refine")(problem).expert_LP, np.arange(16)
    after_LP = disperse(problem.shares_LE, before_LP, place_G)

    def excess_L(expert_LP: np.ndarray) -> np.ndarray:
        return np.array(
            [
                worst_after(load_E, row_P, place_G) * 15 - 1
                for load_E, row_P in zip(problem.shares_LE, expert_LP, strict=True)
            ]
        )

    before_L, after_L = excess_L(before_LP), excess_L(after_LP)
    assert (after_L < before_L).all()
    assert after_L.sum() < 0.75 * before_L.sum()
