"""Replica counts and packing, against the one-by-one rule, by hand, and on nodes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.problem import row_violations
from planner.solvers import pack, peaks, replicate
from planner.solvers.kernels.packing import in_order


def one_by_one(load_E: list[float], slots: int, most: int, least_E: list[int] | None = None) -> list[int]:
    """The textbook rule: the largest load / replicas gets the next slot; of equal ones the lowest id."""
    replicas = list(least_E or [1] * len(load_E))
    for _ in range(slots - sum(replicas)):
        open_ = [e for e in range(len(load_E)) if replicas[e] < most]
        replicas[max(open_, key=lambda e: (load_E[e] / replicas[e], -e))] += 1
    return replicas


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """nodes, GPUs a node, experts, slots a GPU."""
    nodes, per_node, experts = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 24))
    return nodes, per_node, experts, draw(st.integers(-(-experts // (nodes * per_node)), experts))


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20), st.integers(1, 8), st.data())
def test_water_filling_equals_one_by_one(load_E: list[int], most: int, data: st.DataObject) -> None:
    """The fast counts are the slow rule's counts."""
    slots = data.draw(st.integers(len(load_E), len(load_E) * most))
    assert replicate(np.array([load_E], dtype=float), slots, most)[0].tolist() == one_by_one(
        [float(load) for load in load_E], slots, most
    )


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20), st.integers(1, 8), st.data())
def test_water_filling_above_a_least_count(load_E: list[int], most: int, data: st.DataObject) -> None:
    """With a least count for each expert the fast counts are the slow rule's counts from there on, whether
    one number or one for each.
    """
    least_E = data.draw(st.lists(st.integers(1, most), min_size=len(load_E), max_size=len(load_E)))
    slots = data.draw(st.integers(sum(least_E), len(load_E) * most))
    load_LE = np.array([load_E], dtype=float)
    assert replicate(load_LE, slots, most, np.array([least_E]))[0].tolist() == one_by_one(
        [float(load) for load in load_E], slots, most, least_E
    )
    if slots >= most * len(load_E):
        assert replicate(load_LE, slots, most, most)[0].tolist() == [most] * len(load_E)


def test_experts_without_load_share_spare_slots() -> None:
    """Where the only hot expert has all it may have, the rest goes round, not to the lowest id."""
    assert replicate(np.array([[9.0, 0, 0, 0]]), 8, 2)[0].tolist() == [2, 2, 2, 2]


def test_counts_that_cannot_be_are_refused() -> None:
    """More slots than experts times replicas is a fault of the caller."""
    with pytest.raises(ValueError, match="9 slots cannot give each of 4 experts between 1 and 2 replicas"):
        replicate(np.ones((1, 4)), 9, 2)
    with pytest.raises(
        ValueError, match="7 slots cannot give each of 4 experts between 2 and 3 replicas, 8 at least in all"
    ):
        replicate(np.ones((1, 4)), 7, 3, 2)
    with pytest.raises(ValueError, match="between 0 and 3"):
        replicate(np.ones((1, 4)), 7, 3, np.array([0, 1, 1, 1]))
    with pytest.raises(ValueError, match="between 4 and 3"):
        replicate(np.ones((1, 2)), 8, 3, 4)


@settings(max_examples=50)
@given(shapes(), st.integers(0, 1000), st.sampled_from([0.0, 1.0, 4.0]))
def test_packing_breaks_no_rule_and_keeps_counts(
    shape: tuple[int, int, int, int], seed: int, sigma: float
) -> None:
    """From no skew to extreme skew: distinct experts on each GPU, and each expert as often as asked."""
    nodes, per_node, experts, slots_per_gpu = shape
    gpus = nodes * per_node
    load_LE = np.random.default_rng(seed).lognormal(0, sigma, (3, experts))
    replicas_LE = replicate(load_LE, gpus * slots_per_gpu, gpus)
    expert_LP = pack(load_LE, replicas_LE, gpus)
    assert list(row_violations(expert_LP, (0, 1, 2), experts, gpus)) == []
    assert [np.bincount(row, minlength=experts).tolist() for row in expert_LP] == replicas_LE.tolist()


@settings(max_examples=50)
@given(shapes(), st.integers(0, 1000))
def test_replicas_spread_over_nodes(shape: tuple[int, int, int, int], seed: int) -> None:
    """With nodes given, no node has more than its equal share of an expert's replicas."""
    nodes, per_node, experts, slots_per_gpu = shape
    gpus = nodes * per_node
    node_G = np.repeat(np.arange(nodes), per_node)
    load_LE = np.random.default_rng(seed).lognormal(0, 1, (2, experts))
    replicas_LE = replicate(load_LE, gpus * slots_per_gpu, gpus)
    expert_LP = pack(load_LE, replicas_LE, gpus, node_G)
    assert list(row_violations(expert_LP, (0, 1), experts, gpus)) == []
    for row, replicas_E in zip(expert_LP, replicas_LE, strict=True):
        on_node_NE = np.array([np.bincount(part, minlength=experts) for part in row.reshape(nodes, -1)])
        assert (on_node_NE.max(axis=0) == -(-replicas_E // nodes)).all()


def test_few_heavy_experts_get_light_company() -> None:
    """No spare slots and one giant: it sits with the lightest, where dealing in rounds alone would give it
    one of every round.
    """
    load_LE = np.array([[60.0, 10, 10, 10, 9, 9, 9, 1, 1]])
    assert peaks(load_LE, pack(load_LE, np.ones((1, 9), dtype=np.int64), 3), 3)[0] == 62


@settings(max_examples=50)
@given(shapes(), st.integers(0, 1000))
def test_names_of_experts_and_gpus_do_not_matter(shape: tuple[int, int, int, int], seed: int) -> None:
    """Renumbering experts leaves the peak of the packing, renumbering GPUs leaves the peak of a placement."""
    nodes, per_node, experts, slots_per_gpu = shape
    gpus = nodes * per_node
    draw = np.random.default_rng(seed)
    load_LE = draw.lognormal(0, 1, (1, experts))
    renamed_LE = load_LE[:, draw.permutation(experts)]
    first, second = (
        pack(load, replicate(load, gpus * slots_per_gpu, gpus), gpus) for load in (load_LE, renamed_LE)
    )
    assert peaks(load_LE, first, gpus) == pytest.approx(peaks(renamed_LE, second, gpus))
    moved = first.reshape(1, gpus, -1)[:, draw.permutation(gpus)].reshape(1, -1)
    assert peaks(load_LE, moved, gpus) == pytest.approx(peaks(load_LE, first, gpus))


@settings(max_examples=50)
@given(shapes(), st.integers(0, 1000), st.booleans())
def test_packing_on_unequal_gpus(shape: tuple[int, int, int, int], seed: int, spread: bool) -> None:
    """GPUs of unequal speed: no rule is broken, counts and spread are kept, equal speeds change nothing,
    twice is the same bytes.
    """
    nodes, per_node, experts, slots_per_gpu = shape
    gpus = nodes * per_node
    node_G = np.repeat(np.arange(nodes), per_node) if spread else None
    draw = np.random.default_rng(seed)
    load_LE, speed_G = draw.lognormal(0, 1, (2, experts)), draw.uniform(0.5, 1.0, gpus)
    replicas_LE = replicate(load_LE, gpus * slots_per_gpu, gpus)
    expert_LP = pack(load_LE, replicas_LE, gpus, node_G, speed_G=speed_G)
    assert list(row_violations(expert_LP, (0, 1), experts, gpus)) == []
    assert [np.bincount(row, minlength=experts).tolist() for row in expert_LP] == replicas_LE.tolist()
    assert expert_LP.tobytes() == pack(load_LE, replicas_LE, gpus, node_G, speed_G=speed_G).tobytes()
    assert (
        pack(load_LE, replicas_LE, gpus, node_G, speed_G=np.ones(gpus)).tobytes()
        == pack(load_LE, replicas_LE, gpus, node_G).tobytes()
    )


def test_a_slow_gpu_gets_less() -> None:
    """One GPU at 0.8 of the others' speed carries about 0.8 of their load, and the peak is near the mean over
    speeds.
    """
    load_LE = np.random.default_rng(0).lognormal(0, 1, (4, 64))
    speed_G = np.array([1.0, 1.0, 0.8, 1.0, 1.0, 1.0, 1.0, 1.0])
    replicas_LE = replicate(load_LE, 80, 8)
    aware_L = peaks(load_LE, pack(load_LE, replicas_LE, 8, speed_G=speed_G), 8, speed_G)
    blind_L = peaks(load_LE, pack(load_LE, replicas_LE, 8), 8, speed_G)
    least_L = load_LE.sum(axis=1) / speed_G.sum()
    assert (aware_L < least_L * 1.04).all()
    assert (blind_L > least_L * 1.2).all()


def test_order_within_a_gpu_is_by_id() -> None:
    """Two placements that differ only in slot order are the same bytes."""
    assert in_order(np.array([[2, 0, 1, 3]]), 2).tolist() == [[0, 2, 1, 3]]
