"""The plan file: what is written is read back, and what does not hold is found."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from planner.base import BadInput
from planner.plan import disagreements, plan_from_dict, plan_to_dict, read_plan, write_plan
from planner.plan.from_dict import integers
from planner.planning import PlanRequest, answer
from planner.problem import violations


@pytest.fixture(scope="module")
def value() -> dict[str, Any]:
    """A plan of Mixtral on four GPUs, as its file has it."""
    plan = answer(PlanRequest("mixtral", topology="hgx-h100:2x2", redundant=4, method="greedy"))
    found: dict[str, Any] = json.loads(json.dumps(plan_to_dict(plan)))
    return found


def test_write_then_read_is_the_same_plan(tmp_path: Path) -> None:
    """Problem and placement come back equal, valid, and with figures that recompute."""
    plan = answer(PlanRequest("mixtral", topology="hgx-h100:2x2", redundant=4, method="greedy"))
    problem, placement, value = read_plan(write_plan(plan, tmp_path / "plan.json"))
    assert (placement.expert_LP == plan.placement.expert_LP).all()
    assert problem.topology == plan.problem.topology
    assert problem.model == plan.problem.model
    assert problem.workload == plan.problem.workload
    assert violations(problem, placement) == []
    assert disagreements(problem, placement, value) == []


@pytest.mark.parametrize(
    "key",
    [
        "schema",
        "model",
        "gpus",
        "slots_per_gpu",
        "placement",
        "workload",
        "topology",
        "load",
        "predicted",
        "bound",
        "provenance",
    ],
)
def test_every_key_is_needed(key: str, value: dict[str, Any]) -> None:
    """A file without it is refused by a line that names it or its place."""
    spoilt = {name: entry for name, entry in value.items() if name != key}
    with pytest.raises(BadInput, match=key):
        plan_from_dict(spoilt, "plan.json")


@pytest.mark.parametrize(
    "key", ["model", "gpus", "slots_per_gpu", "placement", "workload", "topology", "load", "replica_rule"]
)
@pytest.mark.parametrize("wrong", [None, True, 3.5, "x", [], {}, -1, 10**30])
def test_no_value_of_another_kind_raises_anything_but_bad_input(
    key: str, wrong: object, value: dict[str, Any]
) -> None:
    """A person's file can hold anything; it never ends in a traceback."""
    with pytest.raises(BadInput):
        plan_from_dict({**value, key: wrong}, "plan.json")


@pytest.mark.parametrize("wrong", [None, True, "x", [], -1, float("nan")])
def test_a_memory_floor_that_is_no_size_is_refused(wrong: object, value: dict[str, Any]) -> None:
    """The one optional key is checked like the others."""
    with pytest.raises(BadInput):
        plan_from_dict({**value, "kv_floor_bytes": wrong}, "plan.json")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda row: row.__setitem__(0, 8), "layer 5, slot 0: expert id 8"),
        (lambda row: row.__setitem__(0, -1), "layer 5, slot 0: expert id -1"),
        (lambda row: row.__setitem__(1, row[0]), "layer 5"),
        (lambda row: row.__setitem__(0, 3.0), "layer 5, entry 0: 3.0"),
        (lambda row: row.__setitem__(0, True), "layer 5, entry 0: True"),
        (lambda row: row.__setitem__(0, 2**32), "layer 5, slot 0: expert id 4294967296"),
        (lambda row: row.pop(), "layer 5: expected 12"),
    ],
)
def test_a_damaged_cell_is_named(change: Any, words: str, value: dict[str, Any]) -> None:
    """Layer, slot and value; nothing wraps round or is taken as another expert."""
    spoilt = copy.deepcopy(value)
    change(spoilt["placement"]["5"])
    with pytest.raises(BadInput, match=words):
        plan_from_dict(spoilt, "plan.json")


def test_a_doctored_figure_disagrees(value: dict[str, Any]) -> None:
    """A reported objective must equal a recomputed one."""
    spoilt = copy.deepcopy(value)
    spoilt["predicted"]["fitted"]["total_seconds"] *= 0.99
    problem, placement, _ = plan_from_dict(spoilt, "plan.json")
    assert [line.split()[0] for line in disagreements(problem, placement, spoilt)] == [
        "predicted.fitted.total_seconds"
    ]


def test_integers_names_the_first_cell() -> None:
    """Rows and cells are counted from 0, as in the file."""
    with pytest.raises(BadInput, match="counts, row 1, entry 2: 'x'"):
        integers([[1, 2, 3], [1, 2, "x"]], "counts", (2, 3))


def test_seconds_of_another_releases_constants_are_not_compared(value: dict[str, Any]) -> None:
    """An older file says none, a later one may have others: its seconds stand, its balance is judged."""
    for constants in (None, {"dispatch": {"fixed_seconds": 1.0}}):
        older = copy.deepcopy(value)
        older["constants"] = constants
        older["predicted"]["fitted"]["total_seconds"] *= 2
        older["predicted"]["fitted"]["max_over_mean"] *= 1.5
        problem, placement, _ = plan_from_dict(older, "plan.json")
        assert [line.split()[0] for line in disagreements(problem, placement, older)] == [
            "predicted.fitted.max_over_mean"
        ]
