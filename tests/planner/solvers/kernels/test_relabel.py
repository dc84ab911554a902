"""GPUs are renamed so that most experts stay where they are.

And never against what nodes and GPU models ask for.
"""

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.placement import Placement
from planner.plan import moves_L
from planner.problem import Problem
from planner.solvers import find_method
from planner.solvers.kernels.relabel import relabelled
from tests.strategies import problem_of, problems


def renamed(placement: Placement, order: list[int]) -> Placement:
    """GPU g gets the content of GPU order[g], in every layer."""
    expert_LGS = placement.expert_LP.reshape(len(placement.expert_LP), placement.gpus, -1)
    return Placement(expert_LGS[:, order].reshape(len(expert_LGS), -1), placement.layer_ids, placement.gpus)


@given(problem=problems(rules=["even"]), seed=st.integers(0, 9))
def test_a_renaming_is_undone(problem: Problem, seed: int) -> None:
    """The same placement under other names of GPUs, other ones in each layer: nothing moves."""
    placement = find_method("greedy")(problem)
    other = renamed(placement, np.random.default_rng(seed).permutation(problem.gpus).tolist())
    assert moves_L(placement, relabelled(problem, placement, other)).sum() == 0


@given(problem=problems(), seed=st.integers(0, 9))
def test_never_more_moves_than_without(problem: Problem, seed: int) -> None:
    """In no layer; and each GPU's content is one of the contents there were."""
    old = renamed(
        find_method("linear")(problem), np.random.default_rng(seed).permutation(problem.gpus).tolist()
    )
    new = find_method("greedy")(problem)
    found = relabelled(problem, old, new)
    assert (moves_L(old, found) <= moves_L(old, new)).all()
    for before, after in zip(new.expert_LP, found.expert_LP, strict=True):
        assert sorted(before.reshape(problem.gpus, -1).tolist()) == sorted(
            after.reshape(problem.gpus, -1).tolist()
        )


def test_the_fewest_moves_of_all_renamings() -> None:
    """Four GPUs without nodes that matter: as good as the best of all 24 orders, in each layer."""
    problem = problem_of(
        np.random.default_rng(4).integers(1, 99, (3, 6)).tolist(), gpus=4, slots_per_gpu=3, nodes=2
    )
    old, new = find_method("round-robin")(problem), find_method("greedy")(problem)
    best_L = np.min([moves_L(old, renamed(new, list(order))) for order in permutations(range(4))], axis=0)
    assert moves_L(old, relabelled(problem, old, new)).tolist() == best_L.tolist()


def test_nodes_change_places_as_wholes_where_near_replicas_are_preferred() -> None:
    """Two nodes of two GPUs swapped, and the GPUs in one: undone.

    GPUs mixed over nodes: each node's set of experts stays together.
    """
    problem = problem_of([[5, 4, 3, 2, 9, 9, 1, 1]], gpus=4, slots_per_gpu=2, nodes=2, rule="nearest")
    placement = Placement(np.array([[0, 1, 2, 3, 4, 5, 6, 7]]), (0,), 4)
    assert moves_L(placement, relabelled(problem, placement, renamed(placement, [3, 2, 0, 1]))).sum() == 0
    mixed = renamed(placement, [0, 2, 1, 3])
    found = relabelled(problem, placement, mixed).expert_LP[0].reshape(2, 4)
    assert sorted(sorted(node) for node in found.tolist()) == [[0, 1, 4, 5], [2, 3, 6, 7]]
