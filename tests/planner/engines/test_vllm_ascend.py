"""vllm-ascend: its map and its launch.

Its own code could not be run; the format re-stated here was read in its sources.
"""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from planner.base import BadInput
from planner.engines import find_engine
from planner.maps.check import check_value
from planner.model import ModelSpec
from tests.planner.engines.examples import TINY, machine, question, random_placement, started

ENGINE = find_engine("vllm_ascend")
FOUR = ModelSpec("four", "mixtral", 2, (1,), 4, 1, 8, 8, 8, "bf16", "made for tests")
DEVICES = [[0, 1], [2, 3], [0, 2], [1, 3]]
SHARES = "device_expert must be a list of expert ids, as long on every device"
GOOD = {
    "moe_layer_count": 1,
    "layer_list": [
        {
            "layer_id": 0,
            "device_count": 4,
            "device_list": [{"device_id": rank, "device_expert": held} for rank, held in enumerate(DEVICES)],
        }
    ],
}


def spoilt(**changes: Any) -> dict[str, Any]:
    """GOOD with other values for keys of its layer, or of its device 2 (`device_...`)."""
    value: dict[str, Any] = deepcopy(GOOD)
    for key, change in changes.items():
        layer = value["layer_list"][0]
        place = value if key in value else layer if key in layer else layer["device_list"][2]
        place[key] = change
    return value


def test_a_map_counts_moe_layers_and_names_every_device() -> None:
    """Layers 3, 4 and 5 of a model with three dense layers are 0, 1 and 2; the draft layer has no row; rank r
    holds the plan's slots of GPU r.
    """
    placement = random_placement(TINY, 8, 8)
    value = json.loads(ENGINE.emit(placement, question(TINY, machine(8), 8), "m").files["expert_map.json"])
    assert value["moe_layer_count"] == 3
    assert [layer["layer_id"] for layer in value["layer_list"]] == [0, 1, 2]
    assert value["layer_list"][1]["device_list"][5] == {
        "device_id": 5,
        "device_expert": placement.expert_LP[1, 45:54].tolist(),
    }


def test_a_good_map_is_read_with_its_ep_size() -> None:
    """The EP size is in the file, so nothing stays unchecked; the row is that of the model's first MoE layer,
    layer 1.
    """
    report = check_value(GOOD, "map", FOUR)
    assert (report.ok, report.unchecked, report.facts["EP size"]) == (True, (), 4)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (spoilt(moe_layer_count=2), "moe_layer_count is 2, and layer_list has 1 entries"),
        (spoilt(layer_id=1), "layer_list entry 0: layer_id is 1; it counts MoE layers from 0"),
        (spoilt(layer_id=False), "layer_list entry 0: layer_id is False"),
        (spoilt(device_count=3), "layer_list entry 0: device_count is 3, and device_list has 4 entries"),
        (spoilt(device_list=[]), "layer_list entry 0: device_list must be a list"),
        (spoilt(device_id=3), "layer_list entry 0, device 2: device_id is 3; devices must be in rank order"),
        (spoilt(device_expert=[0]), f"layer_list entry 0, device 2: {SHARES}"),
        (spoilt(device_expert=[0, 0]), "layer 1: GPU 2 holds expert 0 twice"),
        (spoilt(device_expert=[0, 4]), "layer 1, slot 5: expert id 4 is outside 0..3"),
        (spoilt(layer_list=[1]), "layer_list entry 0: device_list must be a list"),
        (spoilt(layer_list=None), "layer_list must be a list"),
    ],
)
def test_faults(value: dict[str, Any], problem: str) -> None:
    """Each is named with its entry and device, or with the absolute layer where it is one of a row."""
    problems = check_value(value, "map", FOUR).problems
    assert any(found.startswith(problem) for found in problems), problems


def test_another_ep_size_than_the_files_is_found() -> None:
    """A map for 4 devices is not one for 2."""
    assert (
        check_value(GOOD, "map", FOUR, 2).problems[0] == "the map is for 4 devices, not for an EP size of 2"
    )


def test_launch_hands_the_map_over_as_json(tmp_path: Path) -> None:
    """The words that launch.sh really gives vllm on node 1: the map's place and its redundancy."""
    emission = ENGINE.emit(random_placement(TINY, 8, 16), question(TINY, machine(4, 4), 16), "org/m")
    words = started(emission, tmp_path, "vllm", node_rank=1)
    assert words[-2] == "--additional-config"
    assert json.loads(words[-1]) == {
        "eplb_config": {"expert_map_path": str(tmp_path / "expert_map.json"), "num_redundant_experts": 16}
    }
    assert words[words.index("--data-parallel-start-rank") + 1] == "4"


def test_a_release_without_static_maps_is_refused() -> None:
    """Static EPLB is to go in v0.25.1."""
    problem = question(TINY, machine(8), 8)
    with pytest.raises(BadInput, match=r"vllm-ascend 0.25.1: static EPLB .* removal"):
        ENGINE.emit(random_placement(TINY, 8, 8), problem, "m", "0.25.1")
    assert any(
        "scheduled for removal" in note
        for note in ENGINE.emit(random_placement(TINY, 8, 8), problem, "m").notes
    )


def test_its_judge_says_what_is_known_and_from_where() -> None:
    """The map and its flags; a lone device is refused; halves of a pair are not known."""
    verdict = ENGINE.judge(question(TINY, machine(8), 8))
    assert verdict.outcome == "serves with flags"
    assert all("read" in finding.source for finding in verdict.findings)
    assert "--additional-config" in verdict.findings[0].flags
    alone = ENGINE.judge(question(TINY, machine(1), 0))
    assert [finding.rule for finding in alone.refused] == ["gpus"]
    with pytest.raises(BadInput, match="--role decode: vllm-ascend is started as mixed"):
        ENGINE.judge(question(TINY, machine(8), 8), role="decode")
    with pytest.raises(BadInput, match="--role decode: vllm-ascend is started as mixed"):
        ENGINE.emit(random_placement(TINY, 8, 8), question(TINY, machine(8), 8), "m", role="decode")
