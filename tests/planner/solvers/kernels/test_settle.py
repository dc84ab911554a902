"""Settling: the exact rule's balance, won without changing what any slot gets.

Shapes: P slots, G GPUs, L layers.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cost import Cost, cost
from planner.load import LoadProfile
from planner.placement import Placement
from planner.plan import Origin
from planner.planning import make_plan
from planner.problem import Problem, violations
from planner.replica.registry import RULES
from planner.solvers import Search, find_method
from planner.solvers.kernels.settle import settle
from planner.solvers.methods import cpsat
from tests.planner.engines.examples import TINY, machine, question, random_placement

EXACT_RULES = [rule for rule in RULES if rule not in {"even", "nearest", "lp"}]


def skewed(nodes: int, redundant: int, rule: str, seed: int = 0, tokens_per_rank: int = 128) -> Problem:
    """A lognormal load of TINY's shape on eight GPUs."""
    counts_LE = (
        np.random.default_rng(seed)
        .lognormal(5, 1, (len(TINY.placed_layer_ids), TINY.experts))
        .astype(np.int64)
    )
    even = question(TINY, machine(*[8 // nodes] * nodes), redundant, tokens_per_rank=tokens_per_rank)
    return replace(
        even, load=LoadProfile(counts_LE[None], TINY.placed_layer_ids, "made for tests"), replica_rule=rule
    )


def received(problem: Problem, placement: Placement) -> list[list[float]]:
    """What the replicas of each expert get, in slot order, layer after layer."""
    got = []
    for expert_P, share_SP in zip(
        placement.expert_LP, RULES[problem.replica_rule](placement, problem.situation()), strict=True
    ):
        order_P = np.argsort(expert_P, kind="stable")
        got.append(share_SP.mean(axis=0)[order_P].round(9).tolist())
    return got


def mapped_layers(found: Cost) -> float:
    """The worst max/mean but for the draft layer, which SGLang serves from the first slot of each expert: its
    replicas are idle, whatever is done.
    """
    return float(found.max_over_mean_L[: len(TINY.moe_layer_ids)].max())


@pytest.mark.parametrize("rule", EXACT_RULES)
@given(nodes=st.sampled_from([1, 2, 4]), redundant=st.sampled_from([0, 8, 24]), seed=st.integers(0, 100))
@settings(deadline=None, max_examples=15)
def test_settling_moves_experts_but_no_choice(rule: str, nodes: int, redundant: int, seed: int) -> None:
    """Every replica gets what it got before, in every layer.

    The answer is valid, and no layer's busiest GPU has more.
    """
    problem = skewed(nodes, redundant, rule, seed)
    before = random_placement(TINY, 8, redundant, seed)
    after = settle(problem, before)
    assert violations(problem, after) == []
    assert received(problem, after) == received(problem, before)
    assert (cost(problem, after).max_over_mean_L <= cost(problem, before).max_over_mean_L + 1e-12).all()


@pytest.mark.parametrize("nodes", [1, 4])
def test_settling_wins_back_what_the_draw_took(nodes: int) -> None:
    """A placement that is even in expectation is not under SGLang's table.

    Settled, every mapped layer is within 1 % of even again.
    """
    problem = skewed(nodes, 16, "nearest-static")
    searched = find_method("refine")(problem.with_rule("nearest"))
    drawn, settled = (
        mapped_layers(cost(problem, placement)) for placement in (searched, settle(problem, searched))
    )
    assert settled < 1.01
    assert drawn > 1.02


def test_settling_follows_the_batch() -> None:
    """With one token a rank vLLM's hash leaves every second replica idle: as if it were not there, and
    settled around.
    """
    problem = skewed(2, 16, "hashed", tokens_per_rank=1)
    searched = find_method("refine")(problem)
    before, after = (
        cost(problem, placement).max_over_mean for placement in (searched, settle(problem, searched))
    )
    assert after < before - 0.1


def test_settling_twice_changes_nothing() -> None:
    """What is settled stays, so the answer does not depend on how often one asks."""
    problem = skewed(4, 16, "nearest-static")
    once = settle(problem, find_method("refine")(problem.with_rule("nearest")))
    assert (settle(problem, once).expert_LP == once.expert_LP).all()


def test_a_plan_under_the_exact_rule_is_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` ends with it, and the step is faster for it.

    A method that is asked for by name is left as it is.
    """
    monkeypatch.setattr(cpsat, "SMALL_CELLS", 0)  # the portfolio without its slowest member
    problem = skewed(4, 16, "nearest-static")
    plans = {
        method: make_plan(lambda _: problem, 16, Search(method), Origin("sglang", method))
        for method in ("auto", "refine")
    }
    searched = find_method("auto")(problem.with_rule("nearest"))
    assert (
        plans["refine"].placement.expert_LP == find_method("refine")(problem.with_rule("nearest")).expert_LP
    ).all()
    assert plans["auto"].fitted.total_seconds < 0.99 * min(
        cost(problem, searched).total_seconds, plans["refine"].fitted.total_seconds
    )
