"""The folder of load windows that the vLLM plugin writes: one load, its windows in order."""

from pathlib import Path

import numpy as np
import pytest

from planner.base import BadInput
from planner.engines.common.vllm_plan_plugin import Windows
from planner.load import read_load
from tests.planner.load.dumps.files import COUNTS, MODEL

OTHER = [[1, 1, 1, 5], [8, 0, 0, 0]]


def written(
    folder: Path, *windows: list[list[int]], kind: str = "moe", keep: int = 64, digest: str = "d"
) -> Path:
    """The folder, after the plugin's own writer."""
    writer = Windows(folder, keep)
    for counts in windows:
        writer.write(kind, np.array(counts), [1, 2], digest)
    return folder


def test_windows_are_read_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    """As the windows of one load, by the layers that they name."""
    load = read_load([written(tmp_path / "load", COUNTS, OTHER)], MODEL)
    assert load.tokens_WLE.tolist() == [COUNTS, OTHER]
    assert load.layer_ids == (1, 2)


def test_one_file_of_the_folder_is_a_load_too(tmp_path: Path) -> None:
    """Its counts have names."""
    (path,) = written(tmp_path, COUNTS).iterdir()
    assert read_load([path], MODEL).tokens_WLE.tolist() == [COUNTS]


def test_the_newest_windows_stay_and_empty_ones_are_not_written(tmp_path: Path) -> None:
    """VLLM's profile run shows a window of zeros."""
    nothing = [[0] * 4] * 2
    load = read_load([written(tmp_path, COUNTS, nothing, OTHER, COUNTS, keep=2)], MODEL)
    assert load.tokens_WLE.tolist() == [OTHER, COUNTS]
    assert [path.suffix for path in tmp_path.iterdir()] == [".npz"] * 2


def test_windows_of_two_maps_and_of_draft_layers_are_told(tmp_path: Path) -> None:
    """Counts are of experts under any map; draft layers have rows of their own."""
    written(tmp_path, COUNTS)
    written(tmp_path, OTHER, digest="another")
    written(tmp_path, OTHER, kind="draft")
    load = read_load([tmp_path], MODEL)
    assert len(load.tokens_WLE) == 2
    notes = " ".join(load.notes)
    assert "recorded under 2 maps" in notes
    assert "1 windows of draft layers are left out" in notes


def test_windows_of_two_models_are_refused(tmp_path: Path) -> None:
    """They cannot be stacked."""
    written(tmp_path, COUNTS)
    written(tmp_path, [[*row, 1] for row in COUNTS])
    with pytest.raises(BadInput, match="not of one model"):
        read_load([tmp_path], MODEL)


def test_a_folder_of_draft_windows_alone_is_refused(tmp_path: Path) -> None:
    """There is nothing to plan from."""
    with pytest.raises(BadInput, match="draft layers alone"):
        read_load([written(tmp_path, COUNTS, kind="draft")], MODEL)
