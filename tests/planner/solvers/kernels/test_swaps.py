"""Swaps and replica moves: never worse, never invalid, and close to the bound on shapes that are served."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.problem import row_violations
from planner.solvers import balance, move_replicas, pack, peaks, replicate
from planner.solvers.kernels.goals import least_peaks
from tests.planner.solvers.kernels.test_packing import shapes


@settings(max_examples=40)
@given(shapes(), st.integers(0, 1000), st.booleans())
def test_each_step_is_valid_and_no_worse(shape: tuple[int, int, int, int], seed: int, spread: bool) -> None:
    """Swaps keep counts and spread, moves keep validity; no layer's peak rises."""
    nodes, per_node, experts, slots_per_gpu = shape
    gpus = nodes * per_node
    node_G = np.repeat(np.arange(nodes), per_node) if spread else None
    load_LE = np.random.default_rng(seed).lognormal(0, 1.5, (2, experts))
    replicas_LE = replicate(load_LE, gpus * slots_per_gpu, gpus)
    started_LP = pack(load_LE, replicas_LE, gpus, node_G)
    swapped_LP = balance(load_LE, started_LP, gpus, node_G=node_G)
    moved_LP = move_replicas(load_LE, swapped_LP, gpus, gpus, node_G=node_G)
    for before, after in ((started_LP, swapped_LP), (swapped_LP, moved_LP)):
        assert list(row_violations(after, (0, 1), experts, gpus)) == []
        assert (peaks(load_LE, after, gpus) <= peaks(load_LE, before, gpus) * (1 + 1e-12)).all()
    assert [np.bincount(row, minlength=experts).tolist() for row in swapped_LP] == replicas_LE.tolist()
    for row in swapped_LP.tolist() + moved_LP.tolist() if spread else []:
        on_node_NE = np.array([np.bincount(part, minlength=experts) for part in np.reshape(row, (nodes, -1))])
        assert (on_node_NE.max(axis=0) == -(-on_node_NE.sum(axis=0) // nodes)).all()


@settings(max_examples=40)
@given(shapes(), st.integers(0, 1000), st.booleans())
def test_each_step_on_unequal_gpus(shape: tuple[int, int, int, int], seed: int, spread: bool) -> None:
    """With a speed for every GPU the peak of load over speed does not rise, no rule is broken, and equal
    speeds change nothing.
    """
    nodes, per_node, experts, slots_per_gpu = shape
    gpus = nodes * per_node
    node_G = np.repeat(np.arange(nodes), per_node) if spread else None
    draw = np.random.default_rng(seed)
    load_LE, speed_G = draw.lognormal(0, 1, (2, experts)), draw.uniform(0.5, 1.0, gpus)
    replicas_LE = replicate(load_LE, gpus * slots_per_gpu, gpus)
    started_LP = pack(load_LE, replicas_LE, gpus, node_G, speed_G=speed_G)
    swapped_LP = balance(load_LE, started_LP, gpus, node_G=node_G, speed_G=speed_G)
    moved_LP = move_replicas(load_LE, swapped_LP, gpus, gpus, node_G=node_G, speed_G=speed_G)
    for before, after in ((started_LP, swapped_LP), (swapped_LP, moved_LP)):
        assert list(row_violations(after, (0, 1), experts, gpus)) == []
        assert (
            peaks(load_LE, after, gpus, speed_G) <= peaks(load_LE, before, gpus, speed_G) * (1 + 1e-12)
        ).all()
    assert [np.bincount(row, minlength=experts).tolist() for row in swapped_LP] == replicas_LE.tolist()
    assert (
        balance(load_LE, started_LP, gpus, node_G=node_G, speed_G=np.ones(gpus)).tobytes()
        == balance(load_LE, started_LP, gpus, node_G=node_G).tobytes()
    )


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.booleans())
def test_no_placement_beats_the_least_peak(seed: int, unequal: bool) -> None:
    """Every packing of two replicas on each of three GPUs, equally fast or not: none is below `least_peaks`,
    and swaps end between it and the start.
    """
    draw = np.random.default_rng(seed)
    load_LE, speed_G = draw.lognormal(0, 1, (1, 6)), draw.uniform(0.5, 1.0, 3) if unequal else np.ones(3)
    best = min(peaks(load_LE, np.array([order]), 3, speed_G)[0] for order in permutations(range(6)))
    reached = peaks(load_LE, balance(load_LE, np.arange(6)[None], 3, speed_G=speed_G), 3, speed_G)[0]
    assert least_peaks(load_LE, 3, speed_G[None])[0] <= best * (1 + 1e-12)
    assert best * (1 - 1e-12) <= reached <= peaks(load_LE, np.arange(6)[None], 3, speed_G)[0] * (1 + 1e-12)


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.integers(1, 4),
    st.integers(0, 1000),
    st.booleans(),
)
def test_swaps_within_nodes(size_N: list[int], slots_per_gpu: int, seed: int, unequal: bool) -> None:
    """Nodes of any size, their GPUs in any order: what a node holds stays there, and the busiest GPU of no
    node rises.
    """
    draw = np.random.default_rng(seed)
    node_G = draw.permutation(np.repeat(np.arange(len(size_N)), size_N))
    gpus, experts = len(node_G), slots_per_gpu * len(node_G)
    load_LE, speed_G = draw.lognormal(0, 1, (2, experts)), draw.uniform(0.5, 1.0, gpus) if unequal else None
    started_LP = np.array([draw.permutation(experts), draw.permutation(experts)])
    balanced_LP = balance(load_LE, started_LP, gpus, node_G=node_G, within_node=True, speed_G=speed_G)
    assert (
        balanced_LP.tobytes()
        == balance(load_LE, started_LP, gpus, node_G=node_G, within_node=True, speed_G=speed_G).tobytes()
    )
    for load_E, before_P, after_P in zip(load_LE, started_LP, balanced_LP, strict=True):
        for node in range(len(size_N)):
            before_XS, after_XS = (row_P.reshape(gpus, -1)[node_G == node] for row_P in (before_P, after_P))
            speed_X = np.ones(len(before_XS)) if speed_G is None else speed_G[node_G == node]
            assert sorted(before_XS.ravel()) == sorted(after_XS.ravel())
            assert (load_E[after_XS].sum(axis=1) / speed_X).max() <= (
                load_E[before_XS].sum(axis=1) / speed_X
            ).max() * (1 + 1e-12)


def test_nodes_are_balanced_apart() -> None:
    """A light node is balanced too, though the busiest GPU of the layer is elsewhere."""
    load_LE = np.array([[9.0, 9, 9, 9, 1, 1, 2, 2]])
    balanced_LP = balance(load_LE, np.arange(8)[None], 4, node_G=np.array([0, 0, 1, 1]), within_node=True)
    assert load_LE[0][balanced_LP[0]].reshape(4, 2).sum(axis=1).tolist() == [18, 18, 3, 3]


@pytest.mark.parametrize(
    ("layers", "experts", "slots", "gpus"), [(58, 256, 288, 32), (60, 384, 448, 64), (26, 64, 288, 32)]
)
def test_gap_on_served_shapes(layers: int, experts: int, slots: int, gpus: int) -> None:
    """Seven to nine slots a GPU, lognormal loads: the mean over layers is within 0.05 % of the mean GPU load,
    which nothing beats.
    """
    load_LE = np.random.default_rng(0).lognormal(0, 1, (layers, experts))
    expert_LP = balance(load_LE, pack(load_LE, replicate(load_LE, slots, gpus), gpus), gpus)
    gap_L = peaks(load_LE, expert_LP, gpus) / (load_LE.sum(axis=1) / gpus) - 1
    assert gap_L.mean() < 5e-4


def test_many_gpus_fit_in_memory_and_time() -> None:
    """61 layers of 256 experts on 1,024 GPUs, two slots each: a valid refined answer in seconds."""
    load_LE = np.random.default_rng(0).lognormal(0, 1, (61, 256))
    expert_LP = balance(load_LE, pack(load_LE, replicate(load_LE, 2048, 1024), 1024), 1024)
    assert list(row_violations(expert_LP, tuple(range(61)), 256, 1024)) == []


def test_a_move_helps_where_swaps_cannot() -> None:
    """The spare slot sits with the lightest expert.

    Taken from it and given to a heavy one the peak falls, which no swap can do.
    """
    load_LE = np.array([[7.0, 5.0, 4.0, 4.0, 1.0]])
    swapped_LP = balance(load_LE, np.array([[0, 4, 1, 2, 3, 4]]), 3)
    moved_LP = move_replicas(load_LE, swapped_LP, 3, 3)
    assert peaks(load_LE, swapped_LP, 3)[0] == 8
    assert peaks(load_LE, moved_LP, 3)[0] == 7.5


@settings(max_examples=40)
@given(shapes(), st.integers(0, 1000))
def test_moves_leave_the_least_count(shape: tuple[int, int, int, int], seed: int) -> None:
    """No expert falls below its least number of replicas."""
    nodes, per_node, experts, slots_per_gpu = shape
    gpus = nodes * per_node
    least = min(2, gpus * slots_per_gpu // experts)
    load_LE = np.random.default_rng(seed).lognormal(0, 2, (2, experts))
    started_LP = pack(load_LE, replicate(load_LE, gpus * slots_per_gpu, gpus, least), gpus)
    moved_LP = move_replicas(load_LE, started_LP, gpus, gpus, least_per_expert=least)
    assert min(np.bincount(row, minlength=experts).min() for row in moved_LP) >= least


def test_two_replicas_are_swapped_where_one_does_not_help() -> None:
    """30 and 26: no swap of one replica lowers the peak, exchanging 10 + 5 for 13 + 1 does."""
    load_LE = np.array([[10.0, 10, 5, 5, 6, 6, 1, 13]])
    start_LP = np.arange(8)[None]
    singles = []
    for one in range(4):
        for other in range(4, 8):
            swapped_LP = start_LP.copy()
            swapped_LP[0, [one, other]] = swapped_LP[0, [other, one]]
            singles.append(peaks(load_LE, swapped_LP, 2)[0])
    assert min(singles) == 30
    assert peaks(load_LE, balance(load_LE, start_LP, 2), 2)[0] == 29


def test_layers_do_not_know_each_other() -> None:
    """Swaps and moves of a layer are the same alone and in company, and whether moves are tried ahead or one
    by one.
    """
    load_LE = np.random.default_rng(3).lognormal(0, 1.5, (5, 40))
    started_LP = pack(load_LE, replicate(load_LE, 48, 8), 8)
    swapped_LP = balance(load_LE, started_LP, 8)
    moved_LP = move_replicas(load_LE, swapped_LP, 8, 8)
    for row in range(5):
        load_1E = load_LE[row : row + 1]
        assert balance(load_1E, started_LP[row : row + 1], 8)[0].tolist() == swapped_LP[row].tolist()
        assert move_replicas(load_1E, swapped_LP[row : row + 1], 8, 8)[0].tolist() == moved_LP[row].tolist()
