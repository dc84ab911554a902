"""The judge of map files: every fault is found with its layer and slot, whatever the format.

Anything else is one clear line.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from planner.base import BadInput
from planner.maps.check import check_value
from planner.maps.report import MapReport
from planner.model import ModelSpec, find_model

FOUR = ModelSpec("four", "mixtral", 1, (0,), 4, 1, 8, 8, 8, "bf16", "made for tests")


GOOD = [0, 1, 2, 3, 0, 1, 2, 3]


def sglang_map(*rows: Any) -> dict[str, Any]:
    return {"physical_to_logical_map": list(rows)}


def trtllm_map(rows: Any, slots: Any = 8, **other: Any) -> dict[str, Any]:
    return {"num_slots": slots, "initial_global_assignments": rows, **other}


def judged(value: Any, model: ModelSpec | None = FOUR, gpus: int | None = 4) -> MapReport:
    return check_value(value, "map", model, gpus)


@pytest.mark.parametrize("wrap", [sglang_map, lambda row: trtllm_map({0: row})], ids=["sglang", "trtllm"])
@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ([0, 1, 2, 2, 0, 1, 2, 0], "layer 0: expert 3 has no slot"),
        ([0, 1, 2, 3, 0, 1, 2, -1], "layer 0, slot 7: expert id -1 is outside 0..3"),
        ([0, 1, 2, 3, 0, 1, 2, 4], "layer 0, slot 7: expert id 4 is outside 0..3"),
        ([0.0, 1, 2, 3, 0, 1, 2, 3], "layer 0, slot 0: 0.0 is not a whole number"),
        ([0, 1, 2, True, 0, 1, 2, 3], "layer 0, slot 3: True is not a whole number"),
        ([0, 1, 2, 3, 0, 1, 2, None], "layer 0, slot 7: None is not a whole number"),
        ([0, 1, 2, 3, 0, 1, 2, 10**30], "layer 0, slot 7: expert id 1e+30 is out of every range"),
        ([0, 1, 2, 2, 0, 1, 3, 3], "layer 0: GPU 1 holds expert 2 twice"),
        ([0, 1, 2, 3, 0, 1, 2, 10**400], "layer 0, slot 7: expert id 1e+400 is out of every range"),
        ([0, 1, 2, 3, 0, 1, 2, -(10**4000)], "layer 0, slot 7: expert id -1e+4000 is out of every range"),
        ([], "layer 0: the row is empty"),
        ("0123", "layer 0: the row is a str"),
    ],
)
def test_a_bad_row_is_found_in_every_format(wrap: Callable[[Any], Any], row: Any, problem: str) -> None:
    """Public bug reports: an engine died of it by an exception, or served a wrong expert in silence."""
    assert any(found.startswith(problem) for found in judged(wrap(row)).problems), judged(wrap(row)).problems


def test_a_good_map_is_ok() -> None:
    """Nothing is found in a map that breaks no rule, and with model and EP size nothing stays unchecked."""
    for value in (sglang_map(GOOD), trtllm_map({0: GOOD}, layer_updates_per_iter=0)):
        report = judged(value)
        assert (report.ok, report.unchecked) == (True, ())


def test_what_could_not_be_judged_is_said() -> None:
    """Without model and EP size the expert count is inferred, and clean EP sizes are listed.

    Clean is one for which no GPU holds an expert twice.
    """
    report = judged(sglang_map([0, 1, 1, 2]), None, None)
    assert report.ok
    assert [line.split(":")[1].strip() for line in report.unchecked] == ["name the model", "give the EP size"]
    assert dict(report.facts) == {
        "layers": 1,
        "slots": 4,
        "experts": 3,
        "experts from": "the largest id + 1",
        "EP sizes without duplicates": "2, 4",
    }


def test_an_absurd_id_is_named_when_the_expert_count_is_inferred() -> None:
    """An id of two thousand million does not become as many experts; its cell is named."""
    implied = "layer 1, slot 7: expert id 2147483647 implies 2147483648 experts"
    assert judged(sglang_map(GOOD, [0, 1, 2, 3, 0, 1, 2, 2**31 - 1]), None).problems == (
        f"{implied}, and a row has 8 slots, so some expert has none",
    )


def test_slots_that_do_not_divide_name_the_nearest_counts() -> None:
    """290 slots for 256 experts on 36 GPUs: 288 and 324 are R = 32 and 68.

    A public generator wrote 288 assignments under num_slots 290.
    """
    model = replace(find_model("deepseek-v3"), draft_layer_ids=())
    row = [slot % 256 for slot in range(290)]
    report = judged(trtllm_map(dict.fromkeys(model.moe_layer_ids, row), 290), model, 36)
    assert len(report.problems) == 1
    assert "290 slots do not divide over 36 GPUs" in report.problems[0]
    assert "32, 68" in report.problems[0]


def test_num_slots_is_held_against_every_row() -> None:
    """288 assignments under `num_slots: 290` are found."""
    report = judged(trtllm_map({0: [slot % 4 for slot in range(288)]}, 290), FOUR, None)
    assert "layer 0: 288 slots, expected 290" in report.problems


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (trtllm_map({0: GOOD}, None), "num_slots is missing"),
        (trtllm_map({0: GOOD}, 8.0), "num_slots is 8.0"),
        (trtllm_map({0: GOOD}, True), "num_slots is True"),
        (trtllm_map({0: GOOD}, layer_updates_per_iter=-1), "layer_updates_per_iter is -1"),
        (trtllm_map({0: GOOD}, num_slot=8), "unknown key 'num_slot'"),
        (trtllm_map({"0": GOOD}), "layer key '0' is not a whole number"),
        (trtllm_map({-1: GOOD}), "layer key -1"),
        (trtllm_map(None), "initial_global_assignments must map layer ids to rows; it is missing"),
        (trtllm_map([GOOD]), "initial_global_assignments must map layer ids to rows; it is a list"),
        ({**sglang_map(GOOD), "layers": 1}, "the key 'layers'"),
        (sglang_map(), "physical_to_logical_map must be a list of rows"),
        ({"physical_to_logical_map": {"0": GOOD}}, "physical_to_logical_map must be a list of rows"),
        (sglang_map(GOOD, GOOD[:-1]), "layer 1: 7 slots, expected 8"),
    ],
)
def test_faults_around_the_rows(value: Any, problem: str) -> None:
    """Unknown keys, wrong types, layer keys that are text, rows of another length."""
    assert any(found.startswith(problem) for found in judged(value).problems), judged(value).problems


def test_a_map_of_moe_layers_alone_is_refused_for_sglang() -> None:
    """58 rows for DeepSeek-V3 would be read as the rows of layers 0 to 57."""
    model = find_model("deepseek-v3")
    report = judged(sglang_map(*[list(range(256))] * 58), model, 8)
    assert report.problems[0].startswith("58 rows, and deepseek-ai/DeepSeek-V3 has 61 decoder layers")
    assert "one row for each MoE layer" in report.problems[0]
    assert judged(sglang_map(*[list(range(256))] * 61), model, 8).ok


def test_a_missing_draft_layer_is_found_for_trtllm() -> None:
    """A public bug report: KeyError 'layer_idx 61', because the map held 3..60 only.

    A key too many does no harm.
    """
    model = find_model("deepseek-v3")
    row = list(range(256))
    report = judged(trtllm_map(dict.fromkeys(range(61), row), 256), model, 8)
    assert report.problems == (
        f"layer 61 of {model.name} has no row (a draft layer: the engine asks for it when MTP is on)",
    )
    assert judged(trtllm_map(dict.fromkeys(range(62), row), 256), model, 8).ok


def test_fewer_slots_than_experts_is_found() -> None:
    """Whatever the row says, some expert has no slot."""
    assert any(
        "the model has 4 experts, and a row has 2 slots" in found.replace("four", "the model")
        for found in judged(sglang_map([0, 1])).problems
    )


@pytest.mark.parametrize("ep", [0, -3])
def test_an_impossible_ep_size_is_refused(ep: int) -> None:
    """An EP size is at least 1."""
    with pytest.raises(BadInput, match="EP size"):
        judged(sglang_map(GOOD), FOUR, ep)
