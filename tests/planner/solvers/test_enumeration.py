"""Every placement once: as many as there are where nothing is alike, and one of each kind where GPUs are."""

import numpy as np
import pytest

from planner.replica.registry import RULES
from planner.solvers import every_placement
from planner.solvers.enumeration import equal_neighbours
from tests.planner.small import every_row, question
from tests.planner.tiny import MACHINES, price_all, tiny_problem


@pytest.mark.parametrize("rule", [name for name in RULES if name != "nearest-static"])
@pytest.mark.parametrize("transport", ["slot", "rank", "node"])
def test_the_cheapest_is_among_them(rule: str, transport: str) -> None:
    """Three experts, R = 1: the least seconds over what is enumerated are those over all placements, on every
    machine.
    """
    for seed, machine in enumerate(MACHINES):
        problem = tiny_problem(machine, 3, 1, 2, rule, transport, 50, 0, seed)
        rows_NP = every_placement(problem, 1000)
        assert rows_NP is not None
        assert price_all(problem, rows_NP).layer_seconds_L.min() == pytest.approx(
            price_all(problem).layer_seconds_L.min(), rel=1e-12
        )


def test_all_are_given_where_no_gpu_has_an_equal() -> None:
    """Under `fixed-by-source` every rank counts: 978 placements of four experts in eight slots, as counted by
    trying.
    """
    rows_NP = every_placement(question(rule="fixed-by-source"), 10_000)
    assert rows_NP is not None
    assert {tuple(row) for row in rows_NP.tolist()} == {
        tuple(row) for row in every_row(4, 4, 2).reshape(-1, 8).tolist()
    }
    assert len(rows_NP) == 978


def test_equal_gpus_and_nodes_are_not_told_apart() -> None:
    """Four experts on 2 x 2 GPUs, one slot each: 4! / (2 · 2 · 2) = 3 under `even`.

    Under `nearest` with R = 0 nodes alone: 4! / 2 = 12.
    """
    counted = {
        rule: every_placement(question(slots_per_gpu=1, rule=rule), 100)
        for rule in ("even", "nearest", "hashed")
    }
    assert {rule: len(rows) for rule, rows in counted.items() if rows is not None} == {
        "even": 3,
        "nearest": 12,
        "hashed": 24,
    }


def test_gpus_are_equal_only_where_the_machine_says_so() -> None:
    """Two nodes of two equal GPUs; a box with two GPUs below a switch and two beside.

    Transport `node` pairs GPUs by position.
    """
    assert equal_neighbours(question()) == ([False, True, False, True], [0, 0, 2, 0])
    assert equal_neighbours(tiny_problem("pcie-box")) == ([False, True, False, True], [0, 0, 0, 0])
    assert equal_neighbours(question(transport="node")) == ([False] * 4, [0, 0, 2, 0])


def test_too_many_are_not_tried() -> None:
    """None where more than asked for, also where one GPU alone has more choices than that."""
    assert every_placement(question(rule="hashed"), 977) is None
    assert every_placement(question([1] * 60, slots_per_gpu=20), 1000) is None
    assert np.array(every_placement(question(rule="hashed"), 978)).shape == (978, 8)
