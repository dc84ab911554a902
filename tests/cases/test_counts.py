"""C03, C04, C05, C18, C26: counts that are absent, broken, wrapped, shared or of other totals."""

from pathlib import Path

import numpy as np
import pytest

from planner.load import read_load
from planner.model import find_model
from tests.cases.asked import FOUR_GPUS, Made, refusal, told


def test_c03_a_layer_without_signal_is_spread_evenly(model: Made, save: Made) -> None:
    """Each expert twice, with a note.

    The load's report has no figures for the layer; a plan's are those of an even load there, never 0 / 0.
    """
    path, load = model(8, num_hidden_layers=2), save("load.json", [[0] * 8, [8, 7, 6, 5, 4, 3, 2, 1]])
    plan = told(f"solve --model {path} --load {load} --redundant 8 {FOUR_GPUS} --method greedy")
    assert np.bincount(plan["placement"]["0"]).tolist() == [2] * 8
    assert "layer 0: no assignments; treated as evenly loaded" in plan["notes"]
    assert np.isfinite(plan["predicted"]["fitted"]["max_over_mean"])
    shown = told(f"load show {load} --model {path}")
    assert [layer["max_over_mean"] for layer in shown["layers"]] == [None, pytest.approx(8 / 4.5)]


@pytest.mark.parametrize(("cell", "word"), [(float("inf"), "inf"), (float("nan"), "nan")])
def test_c04_counts_that_are_no_numbers_are_refused(cell: float, word: str, model: Made, save: Made) -> None:
    """File, layer, expert and value, before anything is solved.

    A balancer that takes them loses experts from its map.
    """
    path = save("load.json", [[5, 4, cell, 3, 2, 1, 1, 1]])
    line = refusal(f"solve --model {model(8)} --load {path} --redundant 4 {FOUR_GPUS}")
    assert f"{path}: window 0, layer 0, expert 2: the count is {word}" in line


def test_c05_a_wrapped_counter_is_named(model: Made, save: Made) -> None:
    """The hottest expert's int32 count has become negative: its cell and the likely cause."""
    load = save("load.json", [[-(2**31), 5, 4, 3, 2, 1, 1, 1]])
    line = refusal(f"solve --model {model(8)} --load {load} --redundant 4 {FOUR_GPUS}")
    assert "layer 0, expert 0: the count is -2147483648" in line
    assert "int32 counter that wrapped" in line


def test_c05_large_counts_are_exact(model: Made, save: Made) -> None:
    """Past int32, and past what float32 holds: 16777217 is more than 16777216."""
    large = save("large.json", [[2**31, 2**32, 5, 4, 3, 2, 1, 1]])
    assert told(f"load show {large} --model {model(8)}")["counts_sum_per_layer"] == [2**31 + 2**32 + 16]
    close = save("close.json", [[2**24, 2**24 + 1, 5, 4, 3, 2, 1, 1]])
    assert told(f"load show {close} --model {model(8)}")["layers"][0]["hottest_expert"] == 1


def test_c18_parts_of_ranks_add_up(model: Made, save: Made) -> None:
    """Two ranks' CSVs, one without an expert of the other: absent is 0, and the sum is over both."""
    head = "layer_id,expert_id,count\n"
    first = save("rank0.csv", f"{head}3,0,24990\n3,18,39249\n3,29,13378\n3,34,13874\n3,43,22360\n")
    second = save("rank1.csv", f"{head}3,18,33056\n3,29,14053\n3,34,14732\n3,43,20474\n")
    path = model(64, num_hidden_layers=4, first_k_dense_replace=3)
    (total_E,) = read_load([first, second], find_model(str(path))).total_LE
    summed = {expert: int(total_E[expert]) for expert in np.flatnonzero(total_E)}
    assert summed == {0: 24990, 18: 72305, 29: 27431, 34: 28606, 43: 42834}
    shown = told(f"load show {first} {second} --model {path}")
    assert shown["counts_sum_per_layer"] == [196166]
    assert shown["layers"][0]["hottest_expert"] == 18


def test_c18_counts_of_slots_need_their_map(model: Made, save: Made) -> None:
    """Six slots are no model of six experts: refused without the map, and summed by expert with it."""
    load, path = save("load.json", [[10, 20, 30, 40, 5, 6]]), model(4)
    assert "give it with --map" in refusal(f"load show {load} --model {path}")
    slots = save("map.json", {"physical_to_logical_map": [[0, 1, 2, 3, 0, 1]]})
    layer = told(f"load show {load} --model {path} --map {slots}")["layers"][0]
    assert (layer["total"], layer["hottest_expert"]) == (111, 3)
    assert layer["max_over_mean"] == pytest.approx(40 / np.mean([15, 26, 30, 40]))


@pytest.mark.parametrize("suffix", ["json", "pt"])
def test_c18_the_same_counts_from_every_rank_are_asked_about(
    suffix: str, model: Made, save: Made, tmp_path: Path
) -> None:
    """Ranks of one tensor-parallel group count the same tokens, others agree by chance.

    No sum without an answer, wherever a load is read.
    """
    torch = pytest.importorskip("torch")
    counts = [[10, 20, 30, 40]]
    paths = [tmp_path / f"rank{rank}.{suffix}" for rank in range(4)]
    for path in paths:
        if suffix == "pt":
            torch.save(torch.tensor(counts), path)
        else:
            save(path.name, counts)
    show = f"load show {' '.join(map(str, paths))} --model {model(4)}"
    line = refusal(show)
    assert str(paths[0]) in line
    assert "say --ranks same (one counter) or --ranks sum (two recordings)" in line
    assert told(f"{show} --ranks same")["counts_sum_per_layer"] == [100]
    assert told(f"{show} --ranks sum")["counts_sum_per_layer"] == [400]
    loads = " ".join(f"--load {path}" for path in paths)
    solve = f"solve --model {model(4)} {loads} --redundant 0 {FOUR_GPUS} --method linear"
    assert "identical counts" in refusal(solve)
    plan = tmp_path / "plan.json"
    told(f"{solve} --ranks same -o {plan}")
    assert "identical counts" in refusal(f"evaluate {plan} {loads}")
    notes = told(f"evaluate {plan} {loads} --ranks same")["notes"]
    assert sum("one counter, as --ranks same says; left out" in note for note in notes) == 3


def test_c26_rows_with_other_totals_are_flagged(model: Made, save: Made) -> None:
    """Layers measured together count tokens * top_k each: 2 % more in one is padding, warm-up or a missing
    rank.
    """
    path = model(4, num_hidden_layers=3)
    even, padded = save("even.json", [[100] * 4] * 3), save("padded.json", [[100] * 4, [102] * 4, [100] * 4])
    assert told(f"load show {even} --model {path}")["warnings"] == []
    (warning,) = told(f"load show {padded} --model {path}")["warnings"]
    assert warning.startswith("layer 1: totals differ from the median over layers by up to 2.0%")


def test_c26_totals_that_no_whole_number_of_tokens_gives_are_flagged(model: Made, save: Made) -> None:
    """Every token is counted top_k times in a layer.

    401 assignments at top 2 are a token counted in part, whichever file holds them.
    """
    path = model(4, num_hidden_layers=2, num_experts_per_tok=2)
    even = save("even.json", [[100] * 4, [99, 101, 100, 100]])
    assert told(f"load show {even} --model {path}")["warnings"] == []
    odd = save("odd.csv", "layer,e0,e1,e2,e3\n0,100,100,100,100\n1,101,100,100,100\n")
    (warning,) = told(f"load show {odd} --model {path}")["warnings"]
    said = "401 assignments are no multiple of the 2 that each token has; tokens are counted in part"
    assert f"window 0, layer 1: {said}" in warning
