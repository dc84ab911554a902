"""A file's rows as the model's layers: which they are, which are refused, and which are filled."""

import pytest

from planner.base import BadInput
from planner.load import read_load
from tests.planner.load.files import Saver, model


def test_physical_counts_without_a_map_are_refused(save: Saver) -> None:
    """C18 B: six slots of four experts are not a six-expert model;
    both numbers and the missing map are named.
    """
    with pytest.raises(BadInput, match=r"6 experts a layer, but small has 4.*physical-to-logical map"):
        read_load([save("load.json", [[10, 20, 30, 40, 5, 6]])], model(layers=1, dense=0))
    with pytest.raises(BadInput, match=r"layer 0 names expert 5; small has the experts 0\.\.3.*map"):
        read_load([save("load.csv", "layer,expert,count\n0,5,6\n")], model(layers=1, dense=0))


def test_rows_of_all_decoder_layers_are_cut_to_the_moe_layers(save: Saver) -> None:
    """As many rows as decoder layers, the dense ones zero: the MoE rows are kept and the note says so."""
    load = read_load([save("load.json", [[0] * 4, [1, 2, 3, 4], [4, 3, 2, 1]])], model())
    assert load.layer_ids == (1, 2)
    assert load.total_LE.tolist() == [[1, 2, 3, 4], [4, 3, 2, 1]]
    assert any("layer 0 of small hold no experts" in note for note in load.notes)


def test_load_in_a_dense_layer_is_refused(save: Saver) -> None:
    """C12: ids that count MoE layers only would shift every row."""
    with pytest.raises(BadInput, match=r"layer 0 has assignments, but small has no experts there"):
        read_load([save("load.json", {"0": [1, 2, 3, 4], "1": [4, 3, 2, 1]})], model())


def test_another_number_of_rows_names_both_counts(save: Saver) -> None:
    """Five rows fit neither two MoE layers nor three decoder layers."""
    with pytest.raises(
        BadInput, match=r"5 layer rows, but small has 2 MoE layers \(3 decoder layers\).*layer_ids"
    ):
        read_load([save("load.json", [[1] * 4] * 5)], model())


def test_rows_may_come_in_any_order(save: Saver) -> None:
    """A mapping from layer id to counts is sorted by id."""
    assert read_load(
        [save("load.json", {"2": [1, 1, 1, 5], "1": [8, 0, 0, 0]})], model()
    ).total_LE.tolist() == [[8, 0, 0, 0], [1, 1, 1, 5]]


def test_layers_that_were_not_measured_take_the_mean_share(save: Saver) -> None:
    """Mean of the shares, at the mean total; totals are kept exactly, and rows and notes say which layers."""
    load = read_load(
        [save("load.json", {"counts": [[8, 0, 0, 0], [0, 4, 0, 0]], "layer_ids": [1, 2]})],
        model(layers=5, draft=1),
    )
    assert load.layer_ids == (1, 2, 3, 4, 5)
    assert load.total_LE[2:].tolist() == [[3, 3, 0, 0]] * 3
    assert load.unmeasured_layer_ids == (3, 4, 5)
    assert any(note.startswith("layers 3-4: not measured") for note in load.notes)
    assert any(note.startswith("no load for layer 5, a draft layer") for note in load.notes)


def test_silent_layers_are_no_part_of_the_mean(save: Saver) -> None:
    """A zero row says nothing about others."""
    load = read_load([save("load.json", {"1": [0, 0, 0, 0], "2": [6, 0, 0, 0]})], model(layers=4))
    assert load.total_LE[2].tolist() == [6, 0, 0, 0]


def test_a_silent_window_fills_nothing(save: Saver) -> None:
    """No assignment in a window: none for the layers that were not measured."""
    load = read_load(
        [save("load.json", {"counts": [[[4, 0, 0, 0]], [[0, 0, 0, 0]]], "layer_ids": [1]})], model()
    )
    assert load.tokens_WLE[:, 1].tolist() == [[4, 0, 0, 0], [0, 0, 0, 0]]


def test_a_measured_draft_layer_is_kept(save: Saver) -> None:
    """C11: a row for the draft layer is load like any other."""
    load = read_load(
        [save("load.json", {str(layer): [layer, 1, 1, 1] for layer in (1, 2, 3)})], model(draft=1)
    )
    assert load.unmeasured_layer_ids == ()
    assert load.total_LE[2].tolist() == [3, 1, 1, 1]
