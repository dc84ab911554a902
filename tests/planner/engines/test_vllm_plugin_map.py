"""The plugin's map as a format: what the package holds is what is written, read and judged."""

import json
from typing import Any

import pytest

from planner.base import BadInput
from planner.engines import find_format
from planner.engines.common.vllm_plugin import package
from planner.maps.check import check_value
from planner.maps.convert import convert_rows
from planner.model import find_model
from tests.planner.engines.examples import TINY, random_placement
from tests.planner.maps.emitted import rows_of

PLACEMENT = random_placement(TINY, 8, 16)
TEXT = find_format("vllm_plugin").map_text(rows_of(PLACEMENT), TINY, 8)


def test_the_package_holds_this_map() -> None:
    """Byte for byte, so that `check` and the plugin read one file."""
    files = package(PLACEMENT, TINY)
    assert files["vllm_plugin/moeplan_vllm_plan/plan_map.json"] == TEXT


def test_it_is_good_for_vllm_with_the_plugin() -> None:
    """Without a word, where vLLM has a balancer for the model; and SGLang would not read it."""
    value = json.loads(TEXT)
    for engine in (None, "vllm", "vllm_plugin"):
        report = check_value(value, "map", TINY, 8, engine)
        assert (report.ok, report.kind, report.facts["slots"]) == (True, "vLLM plugin map", 80)
    assert "SGLang would not read this" in check_value(value, "map", TINY, 8, "sglang").problems[0]


def test_a_model_without_a_balancer_is_named() -> None:
    """Its vLLM would not ask the plugin for a map."""
    model = find_model("gpt-oss-120b")
    rows = rows_of(random_placement(model, 4, 0))
    value = json.loads(find_format("vllm_plugin").map_text(rows, model, 4))
    (problem,) = check_value(value, "map", model, 4, "vllm").problems
    assert "has no balancer for gpt_oss" in problem


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ranks": 4}, "the map is for 4 devices, not for an EP size of 8"),
        ({"ranks": "8"}, "ranks is '8'"),
        ({"slots": 79}, "layer 3: 80 slots, expected 79"),
        ({"layer_ids": [3, 4, 5]}, "layer_ids must name the layer of each of the 4 rows"),
        ({"draft": None}, "draft must be a list of rows"),
        ({"other": 1}, "unknown key 'other'"),
    ],
)
def test_faults_are_named(change: dict[str, Any], words: str) -> None:
    """Sizes and ids that do not fit the rows."""
    value = {**json.loads(TEXT), **change}
    assert any(words in found for found in check_value(value, "map", TINY, 8).problems)


def test_converting_to_it_needs_the_ep_size() -> None:
    """The file states it."""
    with pytest.raises(BadInput, match="give the EP size with --ep"):
        convert_rows(rows_of(PLACEMENT), "vllm_plugin", TINY, None)
