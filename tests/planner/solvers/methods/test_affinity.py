"""The answers of `affinity`: they keep the rules, and on unseen tokens are better than balance alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.bench.traces import ABSENT, DOMAINS, traced_problem, traces_found
from planner.cost import cost, remote_places_L
from planner.load import Trace
from planner.problem import Problem, violations
from planner.solvers import find_candidates, find_method
from tests.planner.solvers.methods.topical import topical_problem, topical_tokens, uneven
from tests.strategies import cluster, problem_of, problems


@settings(max_examples=40)
@given(
    problem=problems(),
    tokens=st.integers(1, 12),
    seed=st.integers(0, 99),
    transport=st.sampled_from(["node", "rank", "slot", "allgather"]),
)
def test_every_candidate_keeps_the_rules(problem: Problem, tokens: int, seed: int, transport: str) -> None:
    """With a trace of a few tokens, whatever the transport."""
    rng = np.random.default_rng(seed)
    layers, experts = len(problem.model.placed_layer_ids), problem.model.experts
    model = replace(problem.model, top_k=min(2, experts))
    experts_LTK = np.stack([topical_tokens(rng, tokens, experts, model.top_k, 2) for _ in range(layers)])
    load = replace(problem.load, trace=Trace(experts_LTK, (tokens,)))
    traced = replace(problem, model=model, load=load, workload=replace(problem.workload, transport=transport))
    for placement in find_candidates("affinity")(traced):
        assert violations(traced, placement) == []


@settings(max_examples=6)
@given(sizes=st.lists(st.sampled_from([1, 2, 4]), min_size=2, max_size=4), seed=st.integers(0, 99))
def test_nodes_of_unequal_size_keep_the_rules(sizes: list[int], seed: int) -> None:
    """8 + 4 + 2 GPUs and the like."""
    problem = topical_problem(
        uneven(*sizes), experts=6, slots_per_gpu=-(-9 // min(sum(sizes), 4)), top_k=2, seed=seed
    )
    for placement in find_candidates("affinity")(problem):
        assert violations(problem, placement) == []


def test_same_bytes_twice_with_a_trace() -> None:
    """Shakes are drawn from the seed and the layer alone."""
    problem = topical_problem(cluster(2, 2), experts=12, slots_per_gpu=4, top_k=3)
    first, second = (find_method("affinity")(problem, seed=3).expert_LP.tobytes() for _ in range(2))
    assert first == second


def test_a_layer_does_not_depend_on_its_company() -> None:
    """Solved alone or beside another, a layer gets the same row."""
    problem = topical_problem(cluster(4, 2), experts=16, slots_per_gpu=3, top_k=4)
    assert problem.load.trace is not None
    load, trace = (
        problem.load,
        Trace(problem.load.trace.experts_LTK[1:].copy(), problem.load.trace.sequence_lengths),
    )
    alone = replace(
        problem,
        model=replace(problem.model, moe_layer_ids=(1,)),
        load=replace(load, tokens_WLE=load.tokens_WLE[:, 1:], layer_ids=(1,), trace=trace),
    )
    assert (
        find_method("affinity")(alone).expert_LP[0].tolist()
        == find_method("affinity")(problem).expert_LP[1].tolist()
    )


def test_tokens_reach_fewer_nodes_that_were_not_fitted() -> None:
    """On unseen tokens of the same topics, at no more than 10 % above refine's busiest GPU."""
    problem = topical_problem(cluster(4, 2), experts=32, slots_per_gpu=5, top_k=4, tokens=1500)
    fitted, unseen = problem.load.with_windows([0, 1]), problem.load.with_windows([2])
    problem = replace(problem, load=fitted)
    ours, refined = find_method("affinity")(problem), find_method("refine")(problem)
    assert (
        remote_places_L(problem, ours, unseen).mean() < 0.9 * remote_places_L(problem, refined, unseen).mean()
    )
    assert cost(problem, ours, unseen).max_over_mean < 1.1 * cost(problem, refined, unseen).max_over_mean


@pytest.mark.skipif(not traces_found(), reason=ABSENT)
@pytest.mark.parametrize("domain", DOMAINS)
def test_on_real_traces_tokens_reach_fewer_nodes(domain: str) -> None:
    """Two layers of DeepSeek-V2-Lite, held-out sequences: under 0.75 of the greedy's remote nodes under even
    split, and a busiest GPU no higher than 1.12.
    """
    problem, held_out = traced_problem(domain, "hgx-h100:4x2", 16, "nearest", "node", every=20)
    ours, greedy = find_method("affinity")(problem), find_method("greedy")(problem.with_rule("even"))
    remote = remote_places_L(problem, ours, held_out).mean()
    assert remote < 0.75 * remote_places_L(problem.with_rule("even"), greedy, held_out).mean()
    assert cost(problem, ours, held_out).max_over_mean < 1.12


def test_the_least_cross_node_share_is_reached_from_counts_alone() -> None:
    """Two nodes, 8 of 32 experts on both: the 8 hottest, which is the least that crosses, and the busiest GPU
    within 2 % of the mean.
    """
    loads = (np.random.default_rng(0).lognormal(0, 1, (3, 32)) * 1e6).astype(int)
    problem = problem_of(loads.tolist(), gpus=4, slots_per_gpu=10, nodes=2, rule="nearest")
    priced = cost(problem, find_method("affinity")(problem))
    coldest_L = np.sort(problem.shares_LE, axis=1)[:, :24].sum(axis=1)
    assert priced.cross_node_L == pytest.approx(coldest_L / 2)
    assert priced.max_over_mean < 1.02


def test_a_budget_of_nothing_still_answers() -> None:
    """The start of the search, unshaken."""
    problem = topical_problem(cluster(2, 2), experts=12, slots_per_gpu=4, top_k=3)
    assert violations(problem, find_method("affinity")(problem, budget_seconds=1e-9)) == []


def test_nothing_is_offered_where_nothing_is_saved() -> None:
    """Every GPU gets every token: the method itself answers with `refine`'s placement, which the portfolio
    has already.
    """
    problem = topical_problem(cluster(2, 2), experts=8, slots_per_gpu=3)
    problem = replace(problem, workload=replace(problem.workload, transport="allgather"))
    assert not list(find_candidates("affinity")(problem))
    assert (
        find_method("affinity")(problem).expert_LP.tolist()
        == find_method("refine")(problem).expert_LP.tolist()
    )


def test_layers_too_large_to_shake_get_one_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """One placement, no dearer by the first weight's price than `refine`'s."""
    problem = topical_problem(cluster(4, 2), experts=16, slots_per_gpu=3, top_k=4)
    monkeypatch.setattr("planner.solvers.methods.affinity.SHAKES_WORK", 1)
    (found,) = find_candidates("affinity")(problem)
    assert violations(problem, found) == []
    refined = find_method("refine")(problem)
    assert (remote_places_L(problem, found) < remote_places_L(problem, refined)).all()
