"""The repair that brings every expert to a second node, on rows that no method would hand it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.problem import Survival, held_places_LE
from planner.problem.survival import least_slots_per_gpu
from planner.solvers.kernels.protect import on_two_nodes
from tests.planner.small import random_row


def twice_each(draw: np.random.Generator, experts: int, gpus: int, slots: int) -> np.ndarray | None:
    """A random row in which every expert has two slots or more and none is twice on a GPU; None where the
    draw went astray.
    """
    for _ in range(20):
        row_P = random_row(draw, experts, gpus, slots)
        if np.bincount(row_P, minlength=experts).min() >= 2:
            return row_P
    return None


@settings(max_examples=200)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=2, max_size=3),
    experts=st.integers(2, 7),
    seed=st.integers(0, 10_000),
    more=st.integers(0, 2),
)
def test_every_expert_gets_a_second_node(sizes: list[int], experts: int, seed: int, more: int) -> None:
    """From random rows on nodes of any size, tight ones too: all on two nodes, none twice on a GPU, none
    below two slots.
    """
    node_G = np.repeat(np.arange(len(sizes)), sizes)
    slots = min(least_slots_per_gpu(Survival(node=True), experts, node_G) + more, experts)
    draw = np.random.default_rng(seed)
    row_P = twice_each(draw, experts, len(node_G), slots)
    if row_P is None:
        return
    repaired_P = on_two_nodes(draw.random((1, experts)), row_P[None], node_G)[0]
    assert (held_places_LE(repaired_P[None], node_G, experts) >= 2).all()
    assert all(len(set(held)) == slots for held in repaired_P.reshape(len(node_G), -1).tolist())


def test_a_slot_is_given_away_where_no_swap_is_possible() -> None:
    """Nodes of 3 and 2 GPUs of 2 slots.

    Expert 2 is on node 0 alone, always beside 1, and swapping 0 or 3 there would leave these on one node.

    So one of the slots of 1 on node 1 becomes one of 2.
    """
    node_G = np.array([0, 0, 0, 1, 1])
    row_P = np.array([0, 3, 2, 1, 2, 1, 3, 1, 0, 1])
    repaired_P = on_two_nodes(np.ones((1, 4)), row_P[None], node_G)[0]
    assert repaired_P.tolist() == [0, 3, 2, 1, 2, 1, 3, 2, 0, 1]


def test_rows_that_survive_are_left_as_they_are() -> None:
    """Byte for byte."""
    row_LP = np.array([[0, 1, 1, 0], [1, 0, 0, 1]])
    assert on_two_nodes(np.ones((2, 2)), row_LP, np.array([0, 1])).tolist() == row_LP.tolist()
