"""Experts that one place alone holds, against the plain definition."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.placement import Placement
from planner.problem import Problem, exposure
from tests.planner.small import random_row
from tests.strategies import problem_of, problems


@given(problem=problems(most_experts=6), seed=st.integers(0, 99))
def test_the_definition(problem: Problem, seed: int) -> None:
    """Each expert of each layer: the set of GPUs and of nodes that hold it; the most load comes first."""
    draw = np.random.default_rng(seed)
    experts, size = problem.model.experts, problem.slots_per_gpu
    rows = [random_row(draw, experts, problem.gpus, size) for _ in problem.model.placed_layer_ids]
    placement = Placement(np.array(rows), problem.model.placed_layer_ids, problem.gpus)
    found = exposure(problem, placement)
    for alone, place_G in ((found.one_gpu, np.arange(problem.gpus)), (found.one_node, problem.node_G)):
        if alone is found.one_node and problem.topology.node_count == 1:
            assert alone == ()
            continue
        expected = {
            (layer, expert, places.pop())
            for layer, row in zip(placement.layer_ids, placement.expert_LP.tolist(), strict=True)
            for expert in range(experts)
            if len(places := {int(place_G[slot // size]) for slot, held in enumerate(row) if held == expert})
            == 1
        }
        assert {(one.layer, one.expert, one.place) for one in alone} == expected
        shares = [one.share for one in alone]
        assert shares == sorted(shares, reverse=True)


def test_by_hand() -> None:
    """Two nodes of two GPUs: 0 is on both nodes, 1 on both GPUs of node 0, 2 on one GPU, 3 everywhere."""
    problem = problem_of([[40, 30, 20, 10]], gpus=4, slots_per_gpu=2, nodes=2)
    found = exposure(problem, Placement(np.array([[0, 1, 1, 3, 2, 3, 0, 3]]), (0,), 4))
    assert [(one.expert, one.place) for one in found.one_gpu] == [(2, 2)]
    assert [(one.expert, one.place) for one in found.one_node] == [(1, 0), (2, 1)]
    assert found.sentences[1] == (
        "2 of 4 experts have all replicas on one node; most load: expert 1 of layer 0 on node 0, "
        "30.0% of its layer"
    )
