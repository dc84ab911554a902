"""The bounds, against an independent search of every placement."""

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.bounds import load_bound
from planner.bounds.load import _even, _hot_set, _slots
from tests.planner.small import Ints, every_row

Floats = npt.NDArray[np.float64]
ROUNDING = 1 + 1e-9
FLASHLB = np.array(
    [[600.0, 560, 120, 120, 20, 10, 10, 10]]
)  # the example in FlashLB's own text: 8 GPUs, 2 slots each

SHAPES = [
    (experts, gpus, slots)
    for experts in range(1, 6)
    for gpus in (1, 2, 3)
    for slots in (1, 2, 3)
    if slots <= experts <= gpus * slots
]
ROWS = {shape: every_row(*shape) for shape in SHAPES}


def even_optimum(load_E: Floats, rows_NGS: Ints) -> float:
    """The least busiest GPU over all placements, an expert's load split evenly over its replicas."""
    busiest = []
    for row_GS in rows_NGS:
        replicas_E = np.bincount(row_GS.ravel(), minlength=len(load_E))
        busiest.append((load_E / replicas_E)[row_GS].sum(axis=1).max())
    return float(min(busiest))


def free_optimum(load_E: Floats, rows_NGS: Ints) -> float:
    """The same where shares are free: a placement's optimum is the most loaded set of experts over the GPUs
    that hold any of them (min cut).
    """
    holds_NGE = (rows_NGS[..., None] == np.arange(len(load_E))).any(axis=2)
    busiest_N = np.zeros(len(rows_NGS))
    for size in range(1, len(load_E) + 1):
        for chosen in map(list, combinations(range(len(load_E)), size)):
            busiest_N = np.maximum(
                busiest_N, load_E[chosen].sum() / holds_NGE[:, :, chosen].any(axis=2).sum(axis=1)
            )
    return float(busiest_N.min())


@st.composite
def instances(draw: st.DrawFn) -> tuple[Floats, tuple[int, int, int]]:
    """load_E and a shape (experts, GPUs, slots a GPU)."""
    shape = draw(st.sampled_from(SHAPES))
    return np.array(
        draw(st.lists(st.integers(0, 30), min_size=shape[0], max_size=shape[0])), dtype=float
    ), shape


@given(instance=instances())
@settings(max_examples=150)
def test_no_bound_exceeds_the_optimum(instance: tuple[Floats, tuple[int, int, int]]) -> None:
    """Each bound alone: three hold for free shares and so for even ones, the fourth for even ones only."""
    load_E, shape = instance
    _, gpus, slots = shape
    ordered_E = np.sort(load_E)[::-1]
    free, even = free_optimum(load_E, ROWS[shape]), even_optimum(load_E, ROWS[shape])
    assert free <= even * ROUNDING
    assert ordered_E.sum() / gpus <= free * ROUNDING
    assert _slots(ordered_E, gpus, slots) <= free * ROUNDING
    assert _hot_set(ordered_E, gpus, slots) <= free * ROUNDING
    assert _even(ordered_E, gpus, slots, above=ordered_E.sum() / gpus) <= even * ROUNDING
    assert load_bound(load_E[None], gpus, slots, even=False).load_L[0] <= free * ROUNDING
    assert load_bound(load_E[None], gpus, slots, even=True).load_L[0] <= even * ROUNDING


def test_every_bound_wins_somewhere_and_is_then_exact() -> None:
    """A bound that says nothing would pass the test above."""
    cases = [
        ("mean", [4.0, 2, 1, 1], 2, 3),
        ("slots", [9.0, 2, 1], 4, 1),
        ("hot set", [10.0, 9, 1, 1], 2, 2),
        ("even", [8.0, 4, 2], 2, 2),
    ]
    for reason, load, gpus, slots in cases:
        found = load_bound(np.array([load]), gpus, slots, even=True)
        assert found.reason_L == (reason,)
        assert found.load_L[0] == pytest.approx(
            even_optimum(np.array(load), every_row(len(load), gpus, slots)), rel=1e-6
        ), reason


def test_a_spare_slot_takes_no_second_cold_expert_away() -> None:
    """One hot expert of 10, seven cold of 3, 3 GPUs of 3 slots.

    On one GPU, the hot expert has at least one cold beside it: 13. On two, four cold: 11.
    """
    found = load_bound(np.array([[10.0] + 7 * [3.0]]), 3, 3, even=False)
    assert found.load_L[0] == 11
    assert found.reason_L == ("hot set",)


@given(load=st.lists(st.integers(0, 50), min_size=1, max_size=5), spare=st.integers(0, 6))
def test_slots_bound_is_exact_with_one_slot_a_gpu(load: list[int], spare: int) -> None:
    """With one slot a GPU it is best to give the next replica to the heaviest, until the GPUs run out."""
    load_E, gpus = np.array(load, dtype=float), len(load) + spare
    replicas_E = np.ones(len(load))
    for _ in range(spare):
        replicas_E[int((load_E / replicas_E).argmax())] += 1
    assert _slots(np.sort(load_E)[::-1], gpus, 1) == pytest.approx((load_E / replicas_E).max(), rel=1e-12)


def test_published_example() -> None:
    """FlashLB's: the fractional optimum is the mean, 181.25; the even one 196.667 (both proven by CP-SAT),
    and the bound is between them.
    """
    assert load_bound(FLASHLB, 8, 2, even=False).load_L[0] == 181.25
    assert 181.25 <= load_bound(FLASHLB, 8, 2, even=True).load_L[0] <= 196.667


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize(
    ("load", "gpus", "slots", "expected"),
    [
        ([0.0, 0, 0, 0], 2, 2, 0.0),  # no load
        ([3.0, 3, 3, 3], 2, 2, 6.0),  # equal loads
        ([7.0], 1, 1, 7.0),  # one expert
        ([7.0], 3, 1, 7 / 3),  # one expert everywhere
        ([5.0, 3, 2], 1, 3, 10.0),  # one GPU
        ([5.0, 0, 0, 0], 4, 1, 5.0),  # nothing to spare
    ],
)
def test_bounds_of_plain_cases(even: bool, load: list[float], gpus: int, slots: int, expected: float) -> None:
    """Answers that need no search."""
    assert load_bound(np.array([load]), gpus, slots, even=even).load_L[0] == pytest.approx(
        expected, rel=1e-12
    )


@given(instance=instances(), doublings=st.integers(-3, 10))
def test_bound_scales_with_the_load(instance: tuple[Floats, tuple[int, int, int]], doublings: int) -> None:
    """Loads times a power of two give the bound times it, exactly; the reason stays."""
    load_E, (_, gpus, slots) = instance
    once, scaled = (
        load_bound(factor * load_E[None], gpus, slots, even=True) for factor in (1.0, 2.0**doublings)
    )
    assert scaled.load_L[0] == 2.0**doublings * once.load_L[0]
    assert scaled.reason_L == once.reason_L


def test_layers_do_not_see_each_other() -> None:
    """A layer's bound is the same alone and among others, whatever the order of its experts."""
    load_LE = np.random.default_rng(1).lognormal(size=(5, 12))
    together = load_bound(load_LE, 4, 4, even=True)
    alone = [load_bound(load_E[None, ::-1], 4, 4, even=True).load_L[0] for load_E in load_LE]
    assert together.load_L.tolist() == pytest.approx(alone, rel=1e-12)
