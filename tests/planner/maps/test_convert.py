"""Conversion: the same rows in every engine's numbering, nothing lost in silence."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput
from planner.engines import engine_names, find_engine, find_format, map_formats
from planner.maps import convert_file, find_map, read_value, rows_of, write_map
from planner.maps.convert import convert_rows, find_map_format
from planner.model import ModelSpec, find_model
from tests.planner.engines.examples import TINY, random_placement

FORMATS = map_formats()


def parsed(text: str) -> Any:
    return json.loads(text) if text.startswith("{") else yaml.safe_load(text)


def rows_in(text: str, name: str, model: ModelSpec) -> dict[int, list[int]]:
    """Rows by absolute layer id, read back from a map of that format."""
    named, found = find_map(parsed(text), "map", prefer=name)
    assert named == name
    return rows_of(found, model)


@given(data=st.data())
def test_engine_to_rows_to_engine_is_the_identity(data: st.DataObject) -> None:
    """Any rows a format can hold, of dense and draft layers too, come back as they were, and so does the
    text.
    """
    name = data.draw(st.sampled_from(FORMATS))
    dense, drafts, layers = (
        data.draw(st.integers(0, 3)),
        data.draw(st.integers(0, 2)),
        data.draw(st.integers(3, 5)),
    )
    moe, past = tuple(range(dense, dense + layers)), dense + layers
    model = replace(TINY, layers=past, moe_layer_ids=moe, draft_layer_ids=tuple(range(past, past + drafts)))
    held = find_format(name).held_layers(model)
    everywhere = replace(TINY, layers=len(held), moe_layer_ids=tuple(range(len(held))), draft_layer_ids=())
    rows = dict(
        zip(
            held,
            random_placement(everywhere, 8, 8, data.draw(st.integers(0, 99))).expert_LP.tolist(),
            strict=True,
        )
    )
    text = find_format(name).map_text(
        {**dict.fromkeys(model.placed_layer_ids, rows[held[0]]), **rows}, model, 8
    )
    assert rows_in(text, name, model) == rows
    converted = convert_rows(rows_in(text, name, model), name, model, 8)
    assert converted.text == text
    unread = name in engine_names() and not find_engine(name).reads_map(model)
    assert any(note.startswith("WARNING") for note in converted.notes) == unread


@given(first=st.sampled_from(FORMATS), second=st.sampled_from(FORMATS), seed=st.integers(0, 99))
def test_any_format_to_any_other_keeps_every_moe_layer(first: str, second: str, seed: int) -> None:
    """There and back: MoE rows are equal;
    a draft row is either kept, or its loss is said where it was not the default.
    """
    placement = random_placement(TINY, 8, 16, seed)
    rows = dict(zip(placement.layer_ids, placement.expert_LP.tolist(), strict=True))
    there = convert_rows(rows_in(convert_rows(rows, first, TINY, 8).text, first, TINY), second, TINY, 8)
    back = rows_in(convert_rows(rows_in(there.text, second, TINY), first, TINY, 8).text, first, TINY)
    assert all(back[layer] == rows[layer] for layer in TINY.moe_layer_ids)
    lost = 6 in find_format(first).held_layers(TINY) and 6 not in find_format(second).held_layers(TINY)
    assert any("no row for layer 6: left out" in note for note in there.notes) == lost


@pytest.mark.parametrize("layer", [3, 30, 60])
def test_layer_numbering_of_deepseek_v3(layer: int) -> None:
    """Layer 3 is row 3 of SGLang, key 3 of TensorRT-LLM, counter 0 of vllm-ascend and row 0 of EPLB."""
    model = find_model("deepseek-v3")
    placement = random_placement(model, 16, 32)
    rows = dict(zip(placement.layer_ids, placement.expert_LP.tolist(), strict=True))
    value = {name: parsed(convert_rows(rows, name, model, 16).text) for name in FORMATS}
    devices = value["vllm_ascend"]["layer_list"][layer - 3]["device_list"]
    assert value["sglang"]["physical_to_logical_map"][layer] == rows[layer]
    assert value["trtllm"]["initial_global_assignments"][layer] == rows[layer]
    assert value["eplb"]["physical_to_logical_map"][layer - 3] == rows[layer]
    assert [expert for device in devices for expert in device["device_expert"]] == rows[layer]


def test_a_draft_row_that_the_source_has_not_is_made_and_said() -> None:
    """SGLang has no row for the draft layer, TensorRT-LLM wants one."""
    rows = dict(zip(TINY.moe_layer_ids, random_placement(TINY, 8, 8).expert_LP.tolist(), strict=False))
    converted = convert_rows(rows, "trtllm", TINY, 8)
    assert parsed(converted.text)["initial_global_assignments"][6] == [slot % 64 for slot in range(72)]
    assert converted.notes == (
        "layer 6 has no row in the source and got the trivial one (expert p % E in slot p)",
    )


def written(folder: Path, name: str = "sglang") -> Path:
    """A map of Mixtral for 8 GPUs."""
    model = find_model("mixtral")
    rows = dict(zip(model.moe_layer_ids, random_placement(model, 8, 8).expert_LP.tolist(), strict=True))
    path = folder / find_format(name).MAP_NAME
    path.write_text(convert_rows(rows, name, model, 8).text)
    return path


def test_a_file_is_converted_by_its_content(tmp_path: Path) -> None:
    """The source format is found; an engine that would ignore the result is named."""
    converted = convert_file(written(tmp_path, "trtllm"), "sglang", model_name="mixtral", ep=8)
    assert converted.text == written(tmp_path, "sglang").read_text()
    assert any("SGLang does not read a map for mixtral" in note for note in converted.notes)


@pytest.mark.parametrize(
    ("source", "target", "model", "ep", "message"),
    [
        ("sglang", "vllm", "mixtral", 8, "vLLM 0.33.0 reads no map file; .*--plugin"),
        ("sglang", "trtlm", "mixtral", 8, "did you mean 'trtllm'"),
        ("trtllm", "eplb", "mixtral", 8, "this is a map of SGLang, not TensorRT-LLM; use --from sglang"),
        ("sglang", "trtllm", None, 8, "name the model with --model"),
        ("sglang", "vllm_ascend", "mixtral", None, "give the EP size with --ep"),
        ("sglang", "trtllm", "mixtral", 4, "holds expert . twice"),
        ("sglang", "trtllm", "deepseek-v3", 8, "32 rows, and .* has 61 decoder layers"),
    ],
)
def test_what_cannot_be_converted_is_one_line(
    source: str, target: str, model: str | None, ep: int | None, message: str, tmp_path: Path
) -> None:
    """Nothing that a rule forbids, and nothing that would be a guess."""
    path = tmp_path / "map.json"
    row = [0, 1, 2, 3, 4, 5, 6, 7, 1, 0, 3, 2, 5, 4, 7, 6]
    path.write_text(
        json.dumps(
            {
                "physical_to_logical_map": [
                    [row[slot] for slot in (0, 1, 9, 8, *range(2, 8), *range(10, 16))]
                ]
                * 32
            }
        )
    )
    with pytest.raises(BadInput, match=message):
        convert_file(path, target, source, model, ep)


@given(seed=st.integers(0, 99), redundant=st.sampled_from([0, 8, 16]))
def test_balancers_arrays_come_back_as_they_were(
    seed: int, redundant: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A map written as .npz is read back with the same rows, as JSON and as .npz again byte for byte."""
    folder = tmp_path_factory.mktemp("map")
    placement = random_placement(TINY, 8, redundant, seed)
    rows = dict(zip(placement.layer_ids, placement.expert_LP.tolist(), strict=True))
    converted = convert_rows(rows, "eplb", TINY, 8)
    first = write_map(converted, "eplb", folder / "first.npz")
    named, found = find_map(read_value(first), str(first))
    assert (named, rows_of(found, TINY)) == ("eplb", rows)
    assert convert_rows(rows_of(found, TINY), "eplb", TINY, 8).text == converted.text
    assert write_map(converted, "eplb", folder / "second.npz").read_bytes() == first.read_bytes()


def test_a_map_of_text_is_not_written_under_an_arrays_name(tmp_path: Path) -> None:
    """An .npz that holds YAML would be a file that nobody can read."""
    converted = convert_file(written(tmp_path), "trtllm", model_name="mixtral", ep=8)
    with pytest.raises(BadInput, match=r"map\.npz: TensorRT-LLM is text; name it \.yaml or \.json"):
        write_map(converted, "trtllm", tmp_path / "map.npz")
    assert not (tmp_path / "map.npz").exists()


def test_a_format_that_is_none_is_refused() -> None:
    """An engine without a map: vLLM."""
    with pytest.raises(BadInput, match="reads no map file"):
        find_map_format("vllm")
