"""Connecting GPUs through shared experts: always done with as many replicas as a tree needs.

Nothing else changes.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.problem import row_violations
from planner.problem.islands import islands_L
from planner.solvers import pack, replicate
from planner.solvers.kernels.connect import connect


@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1.0, 3.0]))
def test_one_island_whatever_the_load(gpus: int, spare: int, seed: int, sigma: float) -> None:
    """Also where R is G - 1, or just above, and with one expert so hot that it takes most replicas."""
    rng = np.random.default_rng(seed)
    experts = spare * gpus + 1
    slots_per_gpu = spare + 1
    load_LE = rng.lognormal(0, sigma, (3, experts))
    expert_LP = pack(load_LE, replicate(load_LE, gpus * slots_per_gpu, gpus), gpus)
    found_LP = connect(load_LE, expert_LP, gpus)
    assert islands_L(found_LP, gpus).tolist() == [1, 1, 1]
    assert list(row_violations(found_LP, (0, 1, 2), experts, gpus)) == []
    assert (np.sort(found_LP, axis=1) == np.sort(expert_LP, axis=1)).all()
    assert (connect(load_LE, found_LP, gpus) == found_LP).all()


@given(st.integers(2, 4), st.integers(2, 3), st.integers(0, 2**32 - 1))
def test_swaps_stay_in_a_node_where_nodes_are_given(gpus_a_node: int, slots_per_gpu: int, seed: int) -> None:
    """Every expert once on each of two nodes, as the loss of a node asks: so it is afterwards, and all GPUs
    are joined.
    """
    experts = gpus_a_node * slots_per_gpu
    rng = np.random.default_rng(seed)
    start_LP = np.concatenate([rng.permutation(experts), rng.permutation(experts)])[None]
    found_LP = connect(
        rng.lognormal(0, 2, (1, experts)), start_LP, 2 * gpus_a_node, node_G=np.repeat([0, 1], gpus_a_node)
    )
    assert islands_L(found_LP, 2 * gpus_a_node).tolist() == [1]
    assert np.sort(found_LP.reshape(2, experts), axis=1).tolist() == [list(range(experts))] * 2


def test_too_few_replicas_are_refused() -> None:
    """Two redundant experts cannot join four GPUs."""
    with pytest.raises(ValueError, match="cannot join 4 GPUs"):
        connect(np.ones((1, 6)), np.array([[0, 1, 2, 3, 4, 5, 0, 1]]), 4)


def test_the_swap_that_costs_least_is_taken() -> None:
    """GPUs 0, 1 share experts 0 and 1, GPUs 2, 3 share 4 and 5: one spare slot each way, and the lightest
    exchange joins the halves.
    """
    load_LE = np.array([[8.0, 8, 1, 2, 8, 8, 3, 9]])
    start = np.array([[0, 1, 2, 0, 1, 3, 4, 5, 6, 4, 5, 7]])
    found = connect(load_LE, start, 4)
    assert islands_L(start, 4).tolist() == [2]
    assert islands_L(found, 4).tolist() == [1]
    assert int((found != start).sum()) == 2
