"""TokenSpeed: SGLang's map for one model, and its launch."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from planner.base import BadInput
from planner.engines import find_engine
from planner.maps.check import check_value
from tests.planner.engines.examples import TINY, machine, question, random_placement, started

ENGINE = find_engine("tokenspeed")
LONGCAT = replace(TINY, architecture="longcat_flash", moe_layer_ids=tuple(range(6)), draft_layer_ids=())


def test_the_map_is_sglang_s() -> None:
    """The same bytes as SGLang's; judged as TokenSpeed's where it is named."""
    placement, problem = random_placement(LONGCAT, 8, 8), question(LONGCAT, machine(8), 8, "prefill")
    text = ENGINE.emit(placement, problem, "m").files["expert_location.json"]
    value = json.loads(text)
    assert value["physical_to_logical_map"] == placement.expert_LP.tolist()
    assert check_value(value, "map", LONGCAT, 8, "tokenspeed").ok


def test_a_load_in_the_file_goes_before_the_map() -> None:
    """TokenSpeed would balance it; any other key it skips."""
    rows = random_placement(LONGCAT, 8, 8).expert_LP.tolist()
    value = {"physical_to_logical_map": rows, "logical_count": [[1]], "note": "x"}
    problems = [
        str(violation) for violation in check_value(value, "map", LONGCAT, 8, "tokenspeed").violations
    ]
    assert len(problems) == 1
    assert "logical_count" in problems[0]


def test_the_launch(tmp_path: Path) -> None:
    """The second of two nodes: no all-to-all, and zero experts left out of the map's ids."""
    emission = ENGINE.emit(random_placement(LONGCAT, 8, 8), question(LONGCAT, machine(4, 4), 8), "m")
    words = started(emission, tmp_path, "tokenspeed", 1)
    assert words[:3] == ["serve", "--model", "m"]
    flags = dict(zip(words[1::2], words[2::2], strict=True))
    assert flags["--node-rank"] == "1"
    assert flags["--dist-init-addr"] == "head.example:25000"
    assert flags["--ep-dispatch-algorithm"] == "static_with_zero_expert"
    assert flags["--ep-num-redundant-experts"] == "8"
    assert flags["--all2all-backend"] == "none"
    assert Path(flags["--init-expert-location"]).is_file()


def test_other_models_get_flags_alone() -> None:
    """TokenSpeed raises at start for a map of a class that does not opt in."""
    emission = ENGINE.emit(random_placement(TINY, 8, 8), question(TINY, machine(8), 8), "m")
    assert "longcat_flash only" in emission.ignored
    assert "--ep-num-redundant-experts" not in emission.launch


def test_more_ranks_than_experts_are_refused() -> None:
    few = replace(LONGCAT, experts=8, top_k=2, expert_groups=1, groups_per_token=1)
    with pytest.raises(BadInput, match="up to the 8 experts"):
        ENGINE.emit(random_placement(few, 16, 8), question(few, machine(8, 8), 8), "m")
