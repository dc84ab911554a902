"""Levelling under several loads: what never changes or gets worse, and a case that the sum cannot see."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.problem import row_violations
from planner.problem.islands import islands_L
from planner.solvers.kernels.level import Limits, level
from planner.solvers.kernels.packing import replica_values
from tests.planner.small import random_row


def worst_L(load_DLE: np.ndarray, expert_LP: np.ndarray, gpus: int, speed_G: np.ndarray) -> np.ndarray:
    peaks = [
        (replica_values(load_LE, expert_LP)[0].reshape(len(load_LE), gpus, -1).sum(axis=2) / speed_G).max(
            axis=1
        )
        for load_LE in load_DLE
    ]
    return np.asarray(np.max(peaks, axis=0))


@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(2, 9),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["free", "joined", "nodes", "speed"]),
)
def test_no_layer_gets_worse_and_no_rule_breaks(
    nodes: int, per_node: int, experts: int, loads: int, seed: int, kind: str
) -> None:
    """Replica counts stay, and what the limits protect: islands, or the nodes of replicated experts."""
    rng = np.random.default_rng(seed)
    gpus = nodes * per_node
    slots_per_gpu = int(rng.integers(-(-experts // gpus), experts + 1))
    expert_LP = np.array([random_row(rng, experts, gpus, slots_per_gpu) for _ in range(2)])
    load_DLE = rng.lognormal(0, 1.5, (loads, 2, experts))
    load_DLE /= load_DLE.sum(axis=2, keepdims=True)
    node_G = np.repeat(np.arange(nodes), per_node)
    speed_G = rng.uniform(0.5, 1, gpus) if kind == "speed" else np.ones(gpus)
    limits = Limits(
        gpus, speed_G if kind == "speed" else None, node_G if kind == "nodes" else None, kind == "joined"
    )
    found_LP = level(load_DLE, expert_LP, limits)
    assert list(row_violations(found_LP, (0, 1), experts, gpus)) == []
    assert (np.sort(found_LP, axis=1) == np.sort(expert_LP, axis=1)).all()
    assert (
        worst_L(load_DLE, found_LP, gpus, speed_G)
        <= worst_L(load_DLE, expert_LP, gpus, speed_G) * (1 + 1e-12)
    ).all()
    assert (level(load_DLE, expert_LP, limits) == found_LP).all()
    if kind == "joined":
        assert islands_L(found_LP, gpus).tolist() == islands_L(expert_LP, gpus).tolist()
    if kind == "nodes":
        node_P = np.repeat(node_G, slots_per_gpu)
        for before_P, after_P in zip(expert_LP, found_LP, strict=True):
            for expert in np.flatnonzero(np.bincount(before_P) > 1):
                assert sorted(node_P[before_P == expert]) == sorted(node_P[after_P == expert])


def test_two_loads_that_the_sum_hides() -> None:
    """Experts 0 and 1 are hot in one load, 2 and 3 in the other.

    On the sum all weigh the same, and only mixed pairs are level in both.
    """
    load_DLE = np.array([[[4.0, 4, 1, 1]], [[1.0, 1, 4, 4]]]) / 10
    found_LP = level(load_DLE, np.array([[0, 1, 2, 3]]), Limits(2))
    assert worst_L(load_DLE, found_LP, 2, np.ones(2)).tolist() == [0.5]
