"""A map beside its plan: whatever it has other than the plan's rows is named, in every format."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.engines import find_format, map_formats
from planner.maps import check_file, write_map
from planner.maps.convert import convert_rows
from planner.maps.report import MapReport
from planner.model import ModelSpec
from planner.placement import Placement
from tests.planner.engines.examples import TINY, random_placement
from tests.planner.maps.emitted import emitted, replan, rows_of, write_rows

FORMATS = map_formats()
PLACEMENT = random_placement(TINY, 8, 16)
ROWS = rows_of(PLACEMENT)

each_format = pytest.mark.parametrize("name", FORMATS)


def changed_map(folder: Path, name: str, rows: dict[int, list[int]]) -> MapReport:
    """What is said of a map with these rows in the place of the emitted one."""
    emitted(folder, name, TINY, PLACEMENT)
    return check_file(write_rows(folder, name, TINY, rows, 8))


@each_format
def test_an_emitted_map_has_its_plans_rows(name: str, tmp_path: Path) -> None:
    """It is ok, says whose rows it has, and there is nothing to note."""
    report = check_file(emitted(tmp_path, name, TINY, PLACEMENT))
    assert (report.ok, report.notes, report.unchecked) == (True, (), ())
    assert report.facts["same rows as"] == str(tmp_path / "plan.json")


@each_format
def test_swapped_rows_are_named(name: str, tmp_path: Path) -> None:
    """Each row keeps every rule; both layers are named, and whose row the first one has."""
    report = changed_map(tmp_path, name, {**ROWS, 3: ROWS[4], 4: ROWS[3]})
    assert report.mistaken
    (problem,) = report.problems
    assert problem.startswith(f"another map than {tmp_path / 'plan.json'}'s: 2 of ")
    assert "layer 3..4; first in layer 3, slot 0" in problem
    assert "layer 3 has the row of layer 4; it was changed after the emission" in problem


@each_format
def test_slots_that_changed_places_are_named(name: str, tmp_path: Path) -> None:
    """Two experts of two GPUs, neither of which the other GPU holds."""
    row = list(ROWS[5])
    first, second = next(
        (one, other)
        for one in range(10)
        for other in range(70, 80)
        if row[one] not in row[70:] and row[other] not in row[:10]
    )
    row[first], row[second] = row[second], row[first]
    report = changed_map(tmp_path, name, {**ROWS, 5: row})
    assert report.mistaken
    assert f"layer 5; first in layer 5, slot {first}: expert {row[first]}, planned" in report.problems[0]
    (found,) = report.violations
    assert (found.rule, found.layer, found.gpu, found.expert) == ("other-map", 5, 0, row[first])


@each_format
def test_one_changed_slot_is_named(name: str, tmp_path: Path) -> None:
    """A replica becomes one of another expert that its GPU does not hold."""
    row = list(ROWS[4])
    slot = next(slot for slot in range(10) if row.count(row[slot]) > 1)
    row[slot] = next(expert for expert in range(64) if expert not in row[:10])
    report = changed_map(tmp_path, name, {**ROWS, 4: row})
    assert report.mistaken
    assert f"first in layer 4, slot {slot}" in report.problems[0]


@each_format
@pytest.mark.parametrize(
    ("model", "gpus", "redundant", "words"),
    [
        (TINY, 8, 24, "88 slots a layer, planned 80"),
        (TINY, 8, 0, "64 slots a layer, planned 80"),
        (replace(TINY, experts=72), 8, 8, "72 experts, planned 64"),
    ],
    ids=["more replicas", "no replicas", "another model"],
)
def test_a_map_of_another_question_is_named(
    name: str, model: ModelSpec, gpus: int, redundant: int, words: str, tmp_path: Path
) -> None:
    """Whether or not its slots would divide over the plan's GPUs; it is another map, not a broken one."""
    emitted(tmp_path, name, TINY, PLACEMENT)
    other = rows_of(random_placement(model, gpus, redundant))
    report = check_file(write_rows(tmp_path, name, model, other, gpus))
    assert report.mistaken
    assert words in report.problems[0]


@each_format
def test_a_map_for_another_ep_size_is_named(name: str, tmp_path: Path) -> None:
    """By the devices that the file states, or by its rows."""
    emitted(tmp_path, name, TINY, PLACEMENT)
    other = rows_of(random_placement(TINY, 4, 16))
    report = check_file(write_rows(tmp_path, name, TINY, other, 4))
    assert report.mistaken
    words = "4 devices, planned 8" if name.startswith("vllm") else "rows differ"
    assert words in report.problems[0]


def test_a_changed_dense_row_is_named(tmp_path: Path) -> None:
    """SGLang's map has rows of dense layers, which are no other map's to change."""
    dense = [ROWS[3][slot] for slot in range(80)]
    report = changed_map(tmp_path, "sglang", {**ROWS, 1: dense})
    assert report.mistaken
    assert "1 of 6 rows differ, layer 1; first in layer 1" in report.problems[0]


@pytest.mark.parametrize("name", ["eplb", "trtllm", "vllm_plugin"])
def test_a_changed_draft_row_is_named(name: str, tmp_path: Path) -> None:
    """In every format that holds it."""
    report = changed_map(tmp_path, name, {**ROWS, 6: ROWS[3]})
    assert report.mistaken
    assert "1 of 4 rows differ, layer 6" in report.problems[0]


def test_a_row_that_is_gone_is_named(tmp_path: Path) -> None:
    """EPLB's tensors may leave draft layers out; those of this plan do not."""
    path = emitted(tmp_path, "eplb", TINY, PLACEMENT)
    value = json.loads(path.read_text())
    path.write_text(json.dumps({key: rows[:3] for key, rows in value.items()}))
    report = check_file(path)
    assert report.mistaken
    assert "another map than" in report.problems[0]
    assert "no row for layer 6" in report.problems[0]


@pytest.mark.parametrize("same", [True, False])
def test_arrays_are_held_against_the_plan(tmp_path: Path, *, same: bool) -> None:
    """EPLB's .npz beside a plan, though no emission wrote it."""
    emitted(tmp_path, "trtllm", TINY, PLACEMENT)
    rows = ROWS if same else {**ROWS, 3: ROWS[5], 5: ROWS[3]}
    path = write_map(convert_rows(rows, "eplb", TINY, 8), "eplb", tmp_path / "map.npz")
    report = check_file(path)
    assert report.ok is same
    if same:
        assert report.notes == ("moeplan-emission.json does not list it: it was not emitted here",)
    else:
        assert "2 of 4 rows differ, layer 3, 5" in report.problems[0]


@each_format
def test_other_bytes_with_the_same_rows_are_noted(name: str, tmp_path: Path) -> None:
    """A map that was laid out anew serves the same placement: ok, with a note."""
    path = emitted(tmp_path, name, TINY, PLACEMENT)
    path.write_text(f"{path.read_text()}\n")
    report = check_file(path)
    assert report.ok
    (note,) = report.notes
    assert note == "its bytes are not those that moeplan-emission.json lists; its rows are the plan's"


def test_a_value_beside_the_rows_is_noted(tmp_path: Path) -> None:
    """TensorRT-LLM would move experts with it."""
    path = emitted(tmp_path, "trtllm", TINY, PLACEMENT)
    path.write_text(path.read_text().replace("layer_updates_per_iter: 0", "layer_updates_per_iter: 5"))
    report = check_file(path)
    assert report.ok
    assert report.notes[1] == "layer_updates_per_iter is 5, the plan's map has 0"


def test_a_changed_plan_is_told_from_a_changed_map(tmp_path: Path) -> None:
    """Rows that differ because plan.json is another; and a stranger's plan with its map, which agree."""
    path = emitted(tmp_path, "trtllm", TINY, PLACEMENT)
    other = random_placement(TINY, 8, 16, seed=1)
    replan(tmp_path, other)
    (problem,) = check_file(path).problems
    assert problem.endswith(f"{tmp_path / 'plan.json'} was changed after the emission")
    write_rows(tmp_path, "trtllm", TINY, rows_of(other), 8)
    report = check_file(path)
    assert report.mistaken
    assert report.problems[0].startswith(f"neither the map nor {tmp_path / 'plan.json'} has the bytes")


def test_a_changed_map_without_its_plan_is_named(tmp_path: Path) -> None:
    """The list alone shows that it is another, even where rows and rules are as they should be."""
    path = emitted(tmp_path, "trtllm", TINY, PLACEMENT)
    (tmp_path / "plan.json").unlink()
    assert check_file(path).ok
    path.write_text(f"{path.read_text()}\n")
    report = check_file(path)
    assert report.mistaken
    assert "there is no plan to hold its rows against" in report.problems[0]


def test_a_broken_map_is_no_other_map(tmp_path: Path) -> None:
    """A map that no model could be served from breaks the rules, and only that is said."""
    report = changed_map(tmp_path, "trtllm", {**ROWS, 4: [70, *ROWS[4][1:]]})
    assert not report.mistaken
    assert {found.rule for found in report.violations} == {"range"}


@st.composite
def models(draw: st.DrawFn) -> ModelSpec:
    """Small models with dense layers before, and draft layers after the MoE layers."""
    dense, layers, drafts = (draw(st.integers(*span)) for span in ((0, 2), (2, 4), (0, 1)))
    past = dense + layers
    return replace(
        TINY,
        experts=draw(st.sampled_from([8, 12])),
        layers=past,
        moe_layer_ids=tuple(range(dense, past)),
        draft_layer_ids=tuple(range(past, past + drafts)),
    )


@st.composite
def changes(draw: st.DrawFn, placement: Placement, experts: int) -> list[list[int]]:
    """Rows after one to three changes: rows swapped, slots swapped, a cell replaced."""
    expert_LP = np.array(placement.expert_LP)
    layer, slot = st.integers(0, len(expert_LP) - 1), st.integers(0, placement.slots - 1)
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["rows", "slots", "cell"]))
        one, other, row = draw(layer), draw(layer), draw(layer)
        first, second = draw(slot), draw(slot)
        if kind == "rows":
            expert_LP[[one, other]] = expert_LP[[other, one]]
        elif kind == "slots":
            expert_LP[row, [first, second]] = expert_LP[row, [second, first]]
        else:
            expert_LP[row, first] = draw(st.integers(0, experts - 1))
    rows: list[list[int]] = expert_LP.tolist()
    return rows


def valid(rows: list[list[int]], experts: int, gpus: int) -> bool:
    """By hand: every expert has a slot in each row, and no GPU holds one twice."""
    shares = [np.reshape(row, (gpus, -1)).tolist() for row in rows]
    whole = all(set(row) == set(range(experts)) for row in rows)
    return whole and all(len(set(share)) == len(share) for row in shares for share in row)


@settings(max_examples=60)
@given(data=st.data(), name=st.sampled_from(FORMATS), model=models())
def test_every_change_of_rows_is_named(
    data: st.DataObject, name: str, model: ModelSpec, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any change that keeps a valid placement makes another map, and one that comes back makes none; rows
    that the format does not hold do not count. Swaps that spoil a row are no valid placement: not ok.
    """
    folder = tmp_path_factory.mktemp("out")
    placement = random_placement(model, 4, data.draw(st.sampled_from([0, 4])), data.draw(st.integers(0, 9)))
    emitted(folder, name, model, placement)
    rows = data.draw(changes(placement, model.experts))
    report = check_file(
        write_rows(folder, name, model, dict(zip(placement.layer_ids, rows, strict=True)), placement.gpus)
    )
    held = [
        row for row, layer in enumerate(placement.layer_ids) if layer in find_format(name).held_layers(model)
    ]
    shown = [rows[row] for row in held]
    same = shown == [placement.expert_LP[row].tolist() for row in held]
    assert report.ok is same
    if not same and valid(shown, model.experts, 4):
        assert report.mistaken
        layers = [placement.layer_ids[row] for row in held if rows[row] != placement.expert_LP[row].tolist()]
        assert report.violations[0].layer == layers[0]
        assert f"{len(layers)} of " in report.problems[0]
