"""Perfect balance: what is handed on makes all GPUs alike, and no placement computes faster."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cost import cost, perfect_balance
from planner.cost.perfect import handed_on
from planner.engines import default_placement
from tests.planner.tiny import price_all, tiny_problem


@given(st.data(), st.integers(1, 6), st.integers(1, 4))
def test_all_gpus_carry_the_mean(data: st.DataObject, gpus: int, each: int) -> None:
    """No expert hands on more than it has, none to its home, and none twice to one GPU."""
    counts = st.lists(st.integers(0, 1000), min_size=gpus * each, max_size=gpus * each)
    load_E = np.array(data.draw(counts), dtype=np.float64)
    home_E = np.repeat(np.arange(gpus), each)
    handed = handed_on(home_E, load_E, gpus)
    load_G, given_E = np.bincount(home_E, weights=load_E, minlength=gpus), np.zeros(len(load_E))
    mean = load_G.mean()
    for one in handed:
        assert home_E[one.expert] == one.giver != one.taker
        load_G[one.giver] -= one.assignments
        load_G[one.taker] += one.assignments
        given_E[one.expert] += one.assignments
    assert np.allclose(load_G, mean, atol=1e-6 * max(mean, 1))
    assert (given_E <= load_E + 1e-9).all()
    assert len({(one.expert, one.taker) for one in handed}) == len(handed)


@pytest.mark.parametrize("seed", range(5))
def test_no_placement_computes_faster_where_flops_decide(seed: int) -> None:
    """Every placement of 4 experts with 2 slots a GPU; tokens are so many that weights count little."""
    problem = tiny_problem(experts=4, slots_per_gpu=2, tokens=2_000_000, seed=seed)
    least = tiny_problem(experts=4, slots_per_gpu=1, tokens=2_000_000, seed=seed)
    found = perfect_balance(least, default_placement(None, least), least.load)
    assert found.cost.compute_seconds_L[0] <= price_all(problem).compute_seconds_L.min() * (1 + 1e-12)
    assert found.cost.max_over_mean == pytest.approx(1)


def test_fetching_is_paid_over_the_links() -> None:
    """All load on the first expert: three GPUs fetch it, two of them over the one NIC of its GPU."""
    problem = tiny_problem(experts=4, slots_per_gpu=1)
    counts = np.array([[[1000, 0, 0, 0]]])
    load = type(problem.load)(counts, (0,), "made up for tests")
    home = default_placement(None, problem)
    found = perfect_balance(problem, home, load)
    assert (found.fetched, found.buffer_experts) == (3, 1)
    assert found.fetch_seconds > 2 * problem.model.expert_bytes / problem.topology.capacity_R.max()
    even = np.array([[[1000, 1000, 1000, 1000]]])
    level = perfect_balance(problem, home, type(problem.load)(even, (0,), "made up for tests"))
    assert (level.fetched, level.fetch_seconds) == (0, 0)
    assert found.cost.dispatch_seconds_L[0] == level.cost.dispatch_seconds_L[0]
    assert cost(problem, home, load).max_over_mean == 4
