"""`affinity`: its prices are those of tokens drawn one by one, its answers near the best of all, and better on unseen tokens than balance alone."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.bench.traces import ABSENT, DOMAINS, traced_problem, traces_found
from planner.cost import cost, remote_places_L
from planner.load import LoadProfile, Trace
from planner.problem import Problem, Workload, violations
from planner.solvers import find_candidates, find_method
from planner.solvers.methods.affinity import settled
from planner.solvers.methods.affinity.layers import layer_of, places, reach_of
from planner.solvers.methods.affinity.reach import Reach
from planner.solvers.methods.affinity.search import Layer, Search, tournament
from planner.solvers.methods.affinity.seats import copies_at, seat
from planner.topology import Topology
from planner.topology.topology import Fabric, Node
from tests.planner.machines import BY_HAND, GPU, flat_pcie, own_nics, switched
from tests.strategies import cluster, problem_of, problems, small_model


def uneven(*sizes: int) -> Topology:
    """Nodes with these numbers of GPUs."""
    nodes = tuple(
        Node((GPU,) * size, switched(list(range(size))), flat_pcie(size), own_nics(size)) for size in sizes
    )
    return Topology("uneven", nodes, Fabric("none", BY_HAND), "made up for tests")


def topical_tokens(
    rng: np.random.Generator, tokens: int, experts: int, top_k: int, topics: int
) -> np.ndarray:
    """Tokens of a topic prefer the same experts, and some experts are popular with all."""
    liking = (
        rng.normal(0, 0.5, experts) + rng.normal(0, 1.5, (topics, experts))[rng.integers(0, topics, tokens)]
    )
    return np.argsort(-(liking + rng.gumbel(size=(tokens, experts))), axis=1)[:, :top_k].astype(np.int32)


def topical_problem(
    topology: Topology,
    experts: int,
    slots_per_gpu: int,
    *,
    rule: str = "nearest",
    top_k: int = 2,
    tokens: int = 60,
    seed: int = 0,
) -> Problem:
    """Two layers with topical tokens in three sequences, transport `node`."""
    rng = np.random.default_rng(seed)
    experts_LTK = np.stack([topical_tokens(rng, tokens, experts, top_k, 3) for _ in range(2)])
    parts = np.split(experts_LTK, 3, axis=1)
    counts_WLE = np.array(
        [[np.bincount(ids_TK.ravel(), minlength=experts) for ids_TK in part] for part in parts]
    )
    load = LoadProfile(
        counts_WLE.astype(np.int64), (0, 1), "made for tests", trace=Trace(experts_LTK, (tokens // 3,) * 3)
    )
    model = replace(small_model(2, experts), top_k=top_k)
    return Problem(topology, model, load, Workload(4096, "prefill", transport="node"), slots_per_gpu, rule)


def tiny_layer(problem: Problem, row: int = 0) -> Layer:
    return layer_of(problem, reach_of(problem), row)


def copies_of_all_placements(experts: int, gpus_N: tuple[int, ...], slots_per_gpu: int) -> list[np.ndarray]:
    """copies_EN of every way to fill places of GPUs, every expert somewhere and no more often at a place than it has GPUs."""
    of_place = []
    for gpus in gpus_N:
        counts = product(range(gpus + 1), repeat=experts)
        of_place.append([count_E for count_E in counts if sum(count_E) == gpus * slots_per_gpu])
    all_EN = (np.array(chosen).T for chosen in product(*of_place))
    return [copies_EN for copies_EN in all_EN if copies_EN.sum(axis=1).all()]


@pytest.mark.parametrize("rule", ["nearest", "even"])
def test_the_price_is_that_of_tokens_one_by_one(rule: str) -> None:
    """The search's messages per token are those of the judge, which knows only slots and the replica rule."""
    problem = topical_problem(cluster(3, 2), experts=8, slots_per_gpu=3, rule=rule, top_k=3)
    placement = find_method("refine")(problem)
    place_P = np.repeat(places(problem), problem.slots_per_gpu)
    copies_LEN = copies_at(placement.expert_LP, place_P, 8)
    prices = [Search(tiny_layer(problem, row), copies_LEN[row], penalty=0.0).price for row in range(2)]
    assert prices == pytest.approx(remote_places_L(problem, placement), rel=1e-5)


@pytest.mark.parametrize("averaged", [False, True])
@given(
    copies=st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3).filter(any), min_size=1, max_size=4)
)
def test_what_is_sent_and_served_adds_up(averaged: bool, copies: list[list[int]]) -> None:
    """Over places an expert is served once; what comes from elsewhere is what the cells send."""
    copies_EN = np.array(copies)
    reach = Reach(np.array([4, 2, 2]), near=True, averaged=averaged)
    served_EN, away_EN = reach.served_N(copies_EN)
    assert served_EN.sum(axis=1) == pytest.approx(1.0)
    assert (reach.share_X(copies_EN) * reach.weight_X).sum(axis=1) == pytest.approx(
        away_EN.sum(axis=1), abs=1e-6
    )


@pytest.mark.parametrize(
    ("rule", "gpus_N"), [("nearest", (1, 1, 1)), ("even", (1, 1, 1)), ("nearest", (2, 1))]
)
@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_the_search_ends_near_the_best_of_all_placements(
    rule: str, gpus_N: tuple[int, ...], penalty: float
) -> None:
    """4 experts in 6 slots: within 2 % of the best of every layer, with all placements priced."""
    for seed in range(4):
        problem = topical_problem(uneven(*gpus_N), experts=4, slots_per_gpu=2, rule=rule, seed=seed)
        start_LP = find_method("refine")(problem).expert_LP
        for row in range(2):
            layer = replace(tiny_layer(problem, row), least_E=np.ones(4, dtype=np.int64))
            best = min(
                Search(layer, copies_EN, penalty).price
                for copies_EN in copies_of_all_placements(4, gpus_N, 2)
            )
            search = Search(layer, copies_at(start_LP, np.repeat(places(problem), 2), 4)[row], penalty)
            found_EN = settled(search, 24, np.random.default_rng(0))
            assert best <= Search(layer, found_EN, penalty).price + 1e-9
            assert Search(layer, found_EN, penalty).price <= best * 1.02 + 1e-6


def test_prices_in_the_tables_are_exact_for_one_step() -> None:
    """The price kept along changes is the price from scratch."""
    problem = topical_problem(cluster(4, 2), experts=16, slots_per_gpu=3, top_k=4)
    start_LP = find_method("refine")(problem).expert_LP
    search = Search(tiny_layer(problem), copies_at(start_LP, np.repeat(places(problem), 3), 16)[0], 2.0)
    before = search.price
    search.descend()
    assert search.price < before
    assert Search(search.layer, search.copies_EN, 2.0).price == pytest.approx(search.price, abs=1e-6)


def test_changes_keep_places_full() -> None:
    """After descents and shakes every place holds as many copies as it has slots, and every expert has one."""
    problem = topical_problem(uneven(3, 2, 1), experts=7, slots_per_gpu=3, top_k=3)
    start_LP = find_method("refine")(problem).expert_LP
    search = Search(tiny_layer(problem), copies_at(start_LP, np.repeat(places(problem), 3), 7)[0], 2.0)
    random = np.random.default_rng(1)
    for _ in range(20):
        search.shake(5, random)
        search.descend()
        assert search.copies_EN.sum(axis=0).tolist() == [9, 6, 3]
        assert search.copies_EN.sum(axis=1).all()
        assert (search.copies_EN <= [3, 2, 1]).all()


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
    """Two layers of DeepSeek-V2-Lite, held-out sequences: under 0.75 of the greedy's remote nodes under even split, and a busiest GPU no higher than 1.12."""
    problem, held_out = traced_problem(domain, "hgx-h100:4x2", 16, "nearest", "node", every=20)
    ours, greedy = find_method("affinity")(problem), find_method("greedy")(problem.with_rule("even"))
    remote = remote_places_L(problem, ours, held_out).mean()
    assert remote < 0.75 * remote_places_L(problem.with_rule("even"), greedy, held_out).mean()
    assert cost(problem, ours, held_out).max_over_mean < 1.12


def test_the_least_cross_node_share_is_reached_from_counts_alone() -> None:
    """Two nodes, 8 of 32 experts on both: the 8 hottest, which is the least that crosses, and the busiest GPU within 2 % of the mean."""
    loads = (np.random.default_rng(0).lognormal(0, 1, (3, 32)) * 1e6).astype(int)
    problem = problem_of(loads.tolist(), gpus=4, slots_per_gpu=10, nodes=2, rule="nearest")
    priced = cost(problem, find_method("affinity")(problem))
    coldest_L = np.sort(problem.shares_LE, axis=1)[:, :24].sum(axis=1)
    assert priced.cross_node_L == pytest.approx(coldest_L / 2)
    assert priced.max_over_mean < 1.02


def test_seats_level_what_comes_from_away() -> None:
    """Two GPUs, two experts that the node serves itself and two from away: each GPU gets one of either kind."""
    copies_LEN, load_LEN = np.ones((1, 4, 1), dtype=np.int64), np.ones((1, 4, 1))
    away_LEN = np.array([1.0, 1.0, 0.0, 0.0]).reshape(1, 4, 1)
    first, second = seat(copies_LEN, load_LEN, away_LEN, np.zeros(2, dtype=np.int64)).reshape(2, 2).tolist()
    assert away_LEN[0, first].sum() == away_LEN[0, second].sum() == 1


def test_every_pair_meets_once() -> None:
    """A tournament of an odd number too: the one that rests is its own partner."""
    for places_ in (2, 5, 8):
        met = [
            tuple(sorted((one, other)))
            for partner_N in tournament(places_).tolist()
            for one, other in enumerate(partner_N)
            if one < other
        ]
        assert sorted(met) == list(combinations(range(places_), 2))


def test_a_budget_of_nothing_still_answers() -> None:
    """The start of the search, unshaken."""
    problem = topical_problem(cluster(2, 2), experts=12, slots_per_gpu=4, top_k=3)
    assert violations(problem, find_method("affinity")(problem, budget_seconds=1e-9)) == []


def test_nothing_is_offered_where_nothing_is_saved() -> None:
    """Every GPU gets every token: the method itself answers with `refine`'s placement, which the portfolio has already."""
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
