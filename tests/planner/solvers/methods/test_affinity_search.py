"""The search of `affinity`: its prices are those of tokens one by one, it ends near the best of all."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cost import remote_places_L
from planner.problem import Problem
from planner.solvers import find_method
from planner.solvers.methods.affinity import settled
from planner.solvers.methods.affinity.copies import Layer
from planner.solvers.methods.affinity.layers import layer_of, places, reach_of
from planner.solvers.methods.affinity.reach import Reach
from planner.solvers.methods.affinity.search import Search, tournament
from planner.solvers.methods.affinity.seats import copies_at, seat
from tests.planner.solvers.methods.topical import topical_problem, uneven
from tests.strategies import cluster


def tiny_layer(problem: Problem, row: int = 0) -> Layer:
    return layer_of(problem, reach_of(problem), row)


def copies_of_all_placements(experts: int, gpus_N: tuple[int, ...], slots_per_gpu: int) -> list[np.ndarray]:
    """copies_EN of every way to fill places of GPUs, every expert somewhere and no more often at a place than
    it has GPUs.
    """
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
    """After descents and shakes every place holds as many copies as it has slots; every expert has one."""
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


def test_seats_level_what_comes_from_away() -> None:
    """Two GPUs, two experts that the node serves itself and two from away: each GPU gets one of each kind."""
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
