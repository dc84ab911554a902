"""Several load files as one load: windows, domains, twins, and what must be alike."""

from pathlib import Path

import numpy as np
import pytest

from planner.base import BadInput
from planner.load import read_load
from tests.planner.load.files import Saver, model


def test_partial_csvs_of_two_ranks_sum(save: Saver) -> None:
    """C18 A: an expert absent from a file counts 0 there;
    totals are those of both ranks, and each window carries its file's name.
    """
    first = save(
        "rank0.csv", "layer_id,expert_id,count\n3,0,24990\n3,18,39249\n3,29,13378\n3,34,13874\n3,43,22360\n"
    )
    second = save("rank1.csv", "layer_id,expert_id,count\n3,18,33056\n3,29,14053\n3,34,14732\n3,43,20474\n")
    load = read_load([first, second], model(layers=4, experts=64, dense=3))
    assert {int(e): int(load.total_LE[0, e]) for e in np.flatnonzero(load.total_LE[0])} == {
        0: 24990,
        18: 72305,
        29: 27431,
        34: 28606,
        43: 42834,
    }
    assert load.tokens_WLE[1, 0, 0] == 0
    assert load.window_names == ("rank0", "rank1")


def test_identical_files_may_be_replicas_of_one_counter(save: Saver) -> None:
    """C18 C: they are read, and a note says what they may be."""
    paths = [save(f"rank{rank}.json", [[4, 3, 2, 1], [1, 2, 3, 4]]) for rank in range(2)]
    with pytest.raises(BadInput, match=r"identical counts.*--ranks same \(one counter\) or --ranks sum"):
        read_load(paths, model())
    same, both = (read_load(paths, model(), ranks=word) for word in ("same", "sum"))
    assert (same.windows, both.windows) == (1, 2)
    assert any("one counter, as --ranks same says; left out" in note for note in same.notes)
    paths[1] = save("rank1.json", [[4, 3, 2, 1], [1, 2, 4, 3]])
    assert not any("replicas" in note for note in read_load(paths, model()).notes)


def test_windows_of_several_files_follow_each_other(save: Saver) -> None:
    """In the order given, with names that carry the file; different units and phases are told."""
    first = save(
        "a.json",
        {
            "counts": [[[1] * 4] * 2, [[2] * 4] * 2],
            "windows": ["x", "y"],
            "window_unit": "minute",
            "phase": "decode",
        },
    )
    load = read_load([first, save("b.npz", counts=np.full((2, 4), 3))], model())
    assert load.tokens_WLE[:, 0, 0].tolist() == [1, 2, 3]
    assert load.window_names == ("a:x", "a:y", "b")
    assert (load.window_unit, load.phase) == ("window", "unknown")
    assert {note for note in load.notes if "different" in note} == {
        "the files have different window units (minute, window)",
        "the files have different phases (decode, unknown)",
    }


def test_files_of_different_layers_are_refused(save: Saver) -> None:
    """Windows of other layers cannot be stacked."""
    with pytest.raises(BadInput, match=r"b\.json has layers 2, .*a\.json has 1;"):
        read_load([save("a.json", {"1": [1] * 4}), save("b.json", {"2": [1] * 4})], model())


def test_traces_and_counts_together_are_counts(save: Saver) -> None:
    """No trace remains that covers a part of the windows only, and the note says so."""
    load = read_load(
        [save("t.json", {"trace": [[[0, 1], [2, 3]]]}), save("c.json", [[2, 1, 0, 1]])], model(layers=2)
    )
    assert load.trace is None
    assert load.windows == 2
    assert any("used as counts only" in note for note in load.notes)


def test_several_files_are_several_domains(save: Saver, tmp_path: Path) -> None:
    """Named by their files; by their whole paths where two share a name;
    one file is a series, unless it says that its windows are domains.
    """
    chat, code = save("chat.json", [[[1] * 4] * 2] * 3), save("code.json", [[[2] * 4] * 2])
    assert read_load([chat, code], model()).domains == ("chat", "chat", "chat", "code")
    assert read_load([chat], model()).domains == ()
    (tmp_path / "other").mkdir()
    twin = save("other/chat.json", [[[3] * 4] * 2])
    assert read_load([chat, twin], model()).domain_names == (str(chat), str(twin))
    said = save(
        "said.json",
        {"counts": [[[1] * 4] * 2, [[2] * 4] * 2], "windows": ["law", "code"], "window_unit": "domain"},
    )
    assert read_load([said], model()).domains == ("law", "code")
