"""The plain tensors of DeepSeek's EPLB: which layers their rows are, how they are told from SGLang's map."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.engines import find_format
from planner.maps import check_file, find_map, rows_of
from planner.maps.check import check_value
from tests.planner.engines.examples import TINY, random_placement

ROWS = random_placement(TINY, 8, 8).expert_LP.tolist()  # layers 3, 4, 5 and the draft layer 6


@pytest.mark.parametrize("count", [3, 4])
def test_rows_are_moe_layers_and_then_draft_layers(count: int) -> None:
    """Three rows are the layers 3 to 5; a fourth is the draft layer."""
    name, found = find_map({"physical_to_logical_map": ROWS[:count], "expert_count": []}, "map")
    assert name == "eplb"
    assert rows_of(found, TINY) == dict(zip((3, 4, 5, 6), ROWS[:count], strict=False))
    assert check_value({"physical_to_logical_map": ROWS[:count], "layer_ids": None}, "map", TINY, 8).ok


def test_a_bare_map_is_sglangs_unless_it_is_named() -> None:
    """Both formats have the same key; rows of MoE layers alone are wrong for SGLang, and right for EPLB."""
    value = {"physical_to_logical_map": ROWS[:3]}
    assert find_map(value, "map")[0] == "sglang"
    assert not check_value(value, "map", TINY, 8).ok
    assert check_value(value, "map", TINY, 8, "eplb").ok


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"layer_ids": [3, 4]}, "layer_ids names 2 layers, and there are 3 rows"),
        ({"layer_ids": [3, 4, 4]}, "layer_ids must be distinct whole numbers"),
        ({"layer_ids": [3, 4, -1]}, "layer_ids must be distinct whole numbers"),
        ({"layer_ids": "345"}, "layer_ids must be distinct whole numbers"),
        ({"layer_ids": [0, 1, 2]}, "layer 3 of tiny has no row"),
        ({"layer_ids": None, "more": 1}, "unknown key 'more'"),
        (
            {"layer_ids": None, "physical_to_logical_map": ROWS + ROWS},
            "8 rows, and tiny has 4 layers that could have one",
        ),
        ({"layer_ids": None, "physical_to_logical_map": ROWS[:2]}, "layer 5 of tiny has no row"),
    ],
)
def test_faults(value: dict[str, Any], problem: str) -> None:
    """Named layers are held against the model; unnamed ones against their number."""
    problems = check_value({"physical_to_logical_map": ROWS[:3], **value}, "map", TINY, 8).problems
    assert any(found.startswith(problem) for found in problems), problems


def test_an_npz_is_read(tmp_path: Path) -> None:
    """What `numpy.savez` makes of rebalance_experts' answers, with the arrays that follow from the map."""
    np.savez(
        tmp_path / "plan.npz",
        physical_to_logical_map=np.array(ROWS),
        expert_count=np.ones((4, 64), dtype=int),
    )
    report = check_file(tmp_path / "plan.npz", ep=8)
    assert (report.ok, report.kind, report.facts["layers"]) == (True, "EPLB tensors", 4)


def test_what_is_written_names_its_layers() -> None:
    """`layer_ids` states the convention in the file."""
    text = find_format("eplb").map_text(dict(zip(TINY.placed_layer_ids, ROWS, strict=True)), TINY, 8)
    assert text.splitlines()[1] == '  "layer_ids": [3, 4, 5, 6],'
