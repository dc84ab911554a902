"""The judge: each rule has a placement that breaks it alone, and good placements break none."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.placement import Placement
from planner.problem import Violation, row_violations, violations
from tests.planner.engines.examples import machine
from tests.planner.small import BEST_ROW, every_row, placed, question, random_row

GOOD = np.array([BEST_ROW])
PROBLEM = question()  # 4 experts in one layer, 4 GPUs, 2 slots each


def rows(expert_LP: list[list[int]], experts: int, gpus: int) -> list[Violation]:
    return list(row_violations(np.array(expert_LP), tuple(range(len(expert_LP))), experts, gpus))


@pytest.mark.parametrize(
    ("rule", "placement", "text"),
    [
        ("layers", Placement(GOOD, (1,), 4), r"missing \[0\], surplus \[1\]"),
        ("rows", Placement(GOOD[:0], (0,), 4), "0 rows for 1 layers"),
        (
            "gpus",
            Placement(np.array([[0, 1, 2, 3, 3, 2, 1, 0]]), (0,), 2),
            "made for 2 GPUs, the topology has 4",
        ),
        (
            "slots",
            Placement(np.array([[0, 1, 2, 3]]), (0,), 4),
            "4 slots a layer, asked for 2 on each of 4 GPUs",
        ),
        (
            "range",
            Placement(np.array([[0, 1, 2, 3, 0, 1, 2, -1]]), (0,), 4),
            r"layer 0, slot 7: expert id -1 is outside 0\.\.3",
        ),
        (
            "coverage",
            Placement(np.array([[0, 1, 2, 0, 1, 2, 0, 1]]), (0,), 4),
            "layer 0: expert 3 has no slot",
        ),
        (
            "distinct",
            Placement(np.array([[0, 1, 2, 2, 3, 0, 1, 3]]), (0,), 4),
            "layer 0: GPU 1 holds expert 2 twice",
        ),
    ],
)
def test_a_placement_that_breaks_one_rule_alone(rule: str, placement: Placement, text: str) -> None:
    """One finding, with its place."""
    (found,) = violations(PROBLEM, placement)
    assert found.rule == rule
    assert re.search(text, found.text), found.text


def test_slots_have_to_divide() -> None:
    """Seven slots on three GPUs: which slot is on which GPU is not known, so no more is said."""
    (found,) = rows([[0, 0, 1, 2, 3, 0, 1]], experts=4, gpus=3)
    assert found == Violation("divides", "7 slots do not divide over 3 GPUs")


def test_good_placements_break_nothing() -> None:
    """The hand-made one, and every valid one of a small shape."""
    assert violations(PROBLEM, placed(BEST_ROW, PROBLEM)) == []
    problem = question([1, 1, 1], machine(3), 2)
    valid = every_row(3, 3, 2).reshape(-1, 6)
    assert [violations(problem, placed(row_P, problem)) for row_P in valid] == [[]] * len(valid)


@given(st.lists(st.integers(-1, 4), min_size=8, max_size=8))
def test_the_judge_agrees_with_the_list_of_valid_placements(row: list[int]) -> None:
    """Sorted within its GPUs, a row is in the list of all valid ones or breaks a rule.

    Never both, never neither.
    """
    listed = {tuple(valid.ravel().tolist()) for valid in every_row(4, 4, 2)}
    in_order = tuple(expert for gpu in range(4) for expert in sorted(row[2 * gpu : 2 * gpu + 2]))
    assert (in_order in listed) == (violations(PROBLEM, placed(row, PROBLEM)) == [])


def test_replicas_on_one_gpu_are_found() -> None:
    """What EPLB answers for 8 equal experts in 12 slots on 4 GPUs, and a placement without a duplicate that
    is as balanced.
    """
    assert [found.rule for found in rows([[4, 0, 0, 5, 1, 1, 6, 2, 2, 7, 3, 3]], 8, 4)] == ["distinct"]
    assert [found.rule for found in rows([[0, 1, 0, 2, 3, 4]], 5, 2)] == ["distinct"]  # not side by side
    assert rows([[0, 1, 4, 1, 2, 5, 2, 3, 6, 3, 0, 7]], 8, 4) == []


def test_more_replicas_than_gpus_are_found() -> None:
    """Five replicas of one expert on four GPUs: one GPU has two."""
    assert [found.rule for found in rows([[0, 0, 0, 1, 0, 2, 0, 3]], 4, 4)] == ["distinct"]
    assert rows([[0, 1, 0, 2, 0, 3, 0, 1]], 4, 4) == []


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ([0, 1, 2, 2, 0, 1, 2, 0], "coverage"),
        ([0, 1, 2, 3, 0, 1, 2, -1], "range"),
        ([0, 1, 2, 3, 0, 1, 2, 4], "range"),
    ],
)
def test_bad_ids_of_a_map_are_found(row: list[int], rule: str) -> None:
    """SGLang fails with ZeroDivisionError, takes -1 for expert 3, or fails with IndexError on these."""
    assert rule in [found.rule for found in rows([row], 4, 4)]


def test_ids_that_are_not_integers_are_no_placement() -> None:
    """0.0 is not expert 0."""
    with pytest.raises(TypeError, match="integer array, not float64"):
        Placement(np.array([[0.0, 1.0]]), (0,), 2)


def test_each_layer_is_judged() -> None:
    """One finding a layer and rule, with the layer's own id; several absent experts are counted."""
    expert_LP = np.array([[0, 1, 2, 3], [0, 0, 0, 0], [0, 1, 2, 9]])
    found = list(row_violations(expert_LP, (3, 4, 60), 4, 2))
    assert [(entry.rule, entry.text.partition(",")[0].partition(":")[0]) for entry in found] == [
        ("coverage", "layer 4"),
        ("distinct", "layer 4"),
        ("range", "layer 60"),
    ]
    assert found[0].text == "layer 4: expert 1 has no slot, nor have 2 others"


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 10_000), st.data())
def test_breaking_a_good_placement_is_noticed(
    experts: int, gpus: int, seed: int, data: st.DataObject
) -> None:
    """Any slot given an id out of range."""
    slots_per_gpu = data.draw(st.integers(-(-experts // gpus), experts))
    row_P = random_row(np.random.default_rng(seed), experts, gpus, slots_per_gpu)
    assert rows([row_P.tolist()], experts, gpus) == []
    row_P[data.draw(st.integers(0, len(row_P) - 1))] = data.draw(
        st.sampled_from([-1, experts, 2**62, -(2**62)])
    )
    assert [found.rule for found in rows([row_P.tolist()], experts, gpus)] == ["range"]
