"""HYGON's vLLM plugin: its map, keyed by class, and its launch."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.engines import find_engine
from planner.maps.check import check_value
from tests.planner.engines.examples import TINY, machine, question, random_placement, started

ENGINE = find_engine("hygon")


def emitted() -> tuple[list[list[int]], dict[str, Any]]:
    placement = random_placement(TINY, 8, 8)
    text = ENGINE.emit(placement, question(TINY, machine(8), 8), "m").files["offline_eplb.json"]
    return placement.expert_LP.tolist(), json.loads(text)


def test_model_and_draft_model_have_a_map_each() -> None:
    """By vLLM's class names, with the figures that the plugin for vLLM 0.28.1 compares."""
    rows, value = emitted()
    assert value["version"] == 2
    main, draft = value["model_maps"]["DeepseekV3ForCausalLM"], value["model_maps"]["DeepSeekMTP"]
    assert main["physical_to_logical_map"] == rows[:3]
    assert draft["physical_to_logical_map"] == rows[3:]
    sizes = ("num_moe_layers", "num_logical_experts", "num_physical_experts", "num_redundant_experts")
    assert [main[key] for key in sizes] == [3, 64, 72, 8]
    assert (main["record_kind"], main["model_class"]) == ("proposal", "DeepseekV3ForCausalLM")
    assert check_value(value, "map", TINY, 8, "hygon").ok


@pytest.mark.parametrize(
    ("key", "change", "said"),
    [
        ("model_class", "Other", "not the key"),
        ("num_moe_layers", 4, "and there are 3 rows"),
        ("physical_to_logical_map", None, "must be a list of rows"),
    ],
)
def test_figures_that_contradict_the_rows_are_found(key: str, change: object, said: str) -> None:
    value = emitted()[1]
    value["model_maps"]["DeepseekV3ForCausalLM"][key] = change
    problems = " ".join(map(str, check_value_violations(value)))
    assert said in problems


def check_value_violations(value: dict[str, Any]) -> tuple[str, ...]:
    found = ENGINE.read_map(value)
    assert found is not None
    return found.problems


def test_two_models_and_an_old_version_are_found() -> None:
    value = emitted()[1]
    value["model_maps"]["MixtralForCausalLM"] = dict(
        value["model_maps"]["DeepseekV3ForCausalLM"], model_class="MixtralForCausalLM"
    )
    value["version"] = 1
    assert [text.split(";")[0] for text in check_value_violations(value)] == [
        "version must be 2 and format vllm_offline_eplb_physical_to_logical_by_model",
        "several models' maps",
    ]


def test_the_launch(tmp_path: Path) -> None:
    """The second of two nodes: the map's path inside vLLM's own balancer configuration."""
    emission = ENGINE.emit(random_placement(TINY, 16, 16), question(TINY, machine(8, 8), 16), "m")
    words = started(emission, tmp_path, "vllm", 1)
    config = json.loads(words[words.index("--eplb-config") + 1])
    assert Path(config.pop("expert_map_path")).is_file()
    assert config == {
        "static_dispatch_policy": "locality_fair",
        "num_redundant_experts": 16,
        "use_async": False,
    }
    assert "--enable-eplb" in words
    assert words[words.index("--data-parallel-start-rank") + 1] == "8"
    assert emission.commands[0].accelerator == "hygon"


def test_classes_that_are_not_known_get_flags_alone() -> None:
    """The plugin stops where the map has not the key of the class that vLLM loads."""
    model = replace(TINY, architecture="mixtral")
    emission = ENGINE.emit(random_placement(model, 8, 8), question(model, machine(8), 8), "m")
    assert "unknown here for mixtral" in emission.ignored
    assert "--enable-eplb" not in emission.launch
