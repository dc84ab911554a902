"""TensorRT-LLM's statistics: ranks summed, iterations as windows, absolute layers, slots made experts."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from planner.base import BadInput
from planner.load import read_load, slot_map
from tests.planner.load.dumps.files import MAP_LP, MODEL, counted, routed

save_file = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed").save_file

RANK0 = {"5_1": [4, 2, 1, 1], "5_2": [2, 2, 2, 2], "6_1": [1, 1, 3, 3], "6_2": [0, 4, 4, 0]}
RANK1 = {"5_1": [1, 1, 1, 1], "5_2": [0, 0, 2, 2], "6_1": [2, 2, 0, 0], "6_2": [1, 1, 1, 1]}


def folder(path: Path, by_rank: dict[int, dict[str, list[int]]], meta: dict[str, Any] | None = None) -> Path:
    for rank, counts in by_rank.items():
        save_file(
            {key: np.array(row, dtype=np.int32) for key, row in counts.items()},
            path / f"rank{rank}.safetensors",
        )
    (path / "meta_info.json").write_text(json.dumps(meta or {"num_experts": 4, "num_experts_per_token": 2}))
    return path


def test_ranks_are_summed_by_iteration_and_layer(tmp_path: Path) -> None:
    """The keys are iteration_layer with absolute layers; other files of the folder are left alone."""
    folder(tmp_path, {0: RANK0, 1: RANK1})
    save_file({"5_1": np.ones((4, 4), dtype=np.int32)}, tmp_path / "cooccurrence_rank0.safetensors")
    save_file({"5_1": np.ones((4, 2), dtype=np.int32)}, tmp_path / "rank0_raw.safetensors")
    load = read_load([tmp_path], MODEL)
    assert load.tokens_WLE.tolist() == [[[5, 3, 2, 2], [2, 2, 4, 4]], [[3, 3, 3, 3], [1, 5, 5, 1]]]
    assert (load.layer_ids, load.window_names, load.window_unit) == ((1, 2), ("5", "6"), "iteration")


def test_files_named_one_by_one_are_the_folder(tmp_path: Path) -> None:
    """What a shell makes of FOLDER/* is read as the folder is; one file alone is one rank."""
    folder(tmp_path, {0: RANK0, 1: RANK1})
    assert np.array_equal(
        read_load(sorted(tmp_path.iterdir()), MODEL).tokens_WLE, read_load([tmp_path], MODEL).tokens_WLE
    )
    assert read_load([tmp_path / "rank0.safetensors"], MODEL).tokens_WLE.sum() == 32
    with pytest.raises(BadInput, match="given twice"):
        read_load([tmp_path, tmp_path / "rank0.safetensors"], MODEL)
    with pytest.raises(BadInput, match=r"only meta_info\.json was given"):
        read_load([tmp_path / "meta_info.json"], MODEL)


def test_missing_ranks_are_named(tmp_path: Path) -> None:
    """A gap in the numbers, and the ranks that meta_info.json says there were."""
    folder(tmp_path, {0: RANK0, 2: RANK1}, {"num_experts": 4, "num_experts_per_token": 2, "ep_size": 5})
    assert any("ranks 1, 3-4 missing" in note for note in read_load([tmp_path], MODEL).notes)


def test_identical_ranks_are_refused(tmp_path: Path) -> None:
    """C18 C: tensor parallel ranks count the same tokens."""
    folder(tmp_path, {0: RANK0, 1: RANK0})
    with pytest.raises(BadInput, match=r"rank0\.safetensors and .*rank1\.safetensors hold identical counts"):
        read_load([tmp_path], MODEL)
    same, both = (read_load([tmp_path], MODEL, ranks=ranks) for ranks in ("same", "sum"))
    assert both.tokens_WLE.tolist() == (2 * same.tokens_WLE).tolist()
    assert not any("missing" in note for note in same.notes)


def test_slots_need_their_map(tmp_path: Path) -> None:
    """C18 B: counts of slots, [10,20,30,40,5,6] under [0,1,2,3,0,1], are [15,26,30,40]."""
    slots = {"5_1": [10, 20, 30, 40, 5, 6], "5_2": [10, 20, 30, 40, 5, 6]}
    folder(tmp_path, {0: slots}, {"num_experts": 6, "num_experts_per_token": 2})
    with pytest.raises(BadInput, match=r"6 experts a layer, but small has 4.*--map"):
        read_load([tmp_path], MODEL)
    load = read_load([tmp_path], MODEL, slot_map(MAP_LP, "map.json", 4))
    assert load.total_LE.tolist() == [[15, 26, 30, 40]] * 2


def test_a_layer_that_an_iteration_lacks_is_noted(tmp_path: Path) -> None:
    """It counts 0 there, and the totals show it."""
    folder(tmp_path, {0: {key: row for key, row in RANK0.items() if key != "6_2"}})
    assert any(
        "1 pairs of iteration and layer were not recorded" in note
        for note in read_load([tmp_path], MODEL).notes
    )


def with_ids(path: Path, by_rank: dict[int, list[npt.NDArray[np.int32]]]) -> Path:
    """Counts of, and the ids [token, decoder layer, k] themselves for, iterations 5 and 6 of each rank."""
    counts = {
        rank: {
            f"{5 + i}_{layer}": counted(ids)[layer - 1].tolist()
            for i, ids in enumerate(steps)
            for layer in (1, 2)
        }
        for rank, steps in by_rank.items()
    }
    folder(path, counts)
    for rank, steps in by_rank.items():
        save_file(
            {
                f"{5 + i}_{layer}": np.ascontiguousarray(ids[:, layer])
                for i, ids in enumerate(steps)
                for layer in (1, 2)
            },
            path / f"token_selected_experts_rank{rank}.safetensors",
        )
    return path


def test_the_ids_beside_the_counts_are_the_trace(tmp_path: Path) -> None:
    """Ranks in order within an iteration; the trace's counts are those of the rank files.

    Nothing is taken for a common prompt.
    """
    ids = {0: [routed(5), routed(6)], 1: [routed(3, seed=3), routed(4, seed=4)]}
    load = read_load([with_ids(tmp_path, ids)], MODEL)
    assert load.trace is not None
    assert load.trace.sequence_lengths == (8, 10)
    assert np.array_equal(
        load.trace.experts_LTK,
        np.concatenate([ids[0][0], ids[1][0], ids[0][1], ids[1][1]]).transpose(1, 0, 2)[1:],
    )
    assert load.tokens_WLE.tolist() == [(counted(ids[0][i]) + counted(ids[1][i])).tolist() for i in (0, 1)]


def test_co_occurrence_counts_become_drawn_tokens(tmp_path: Path) -> None:
    """Those of all ranks and iterations together;
    a rank without them, or another shape, is noted and the counts are used alone.
    """
    folder(tmp_path, {0: RANK0, 1: RANK1})
    pairs = {
        f"{iteration}_{layer}": np.full((4, 4), 2, dtype=np.int32) for iteration in (5, 6) for layer in (1, 2)
    }
    save_file(pairs, tmp_path / "cooccurrence_rank0.safetensors")
    alone = read_load([tmp_path], MODEL)
    assert alone.trace is None
    assert "cooccurrence_rank1.safetensors is missing" in " ".join(alone.notes)
    save_file(
        {**pairs, "5_1": np.full((3, 3), 2, dtype=np.int32)}, tmp_path / "cooccurrence_rank1.safetensors"
    )
    assert "not whole numbers [4, 4]" in " ".join(read_load([tmp_path], MODEL).notes)
    save_file(pairs, tmp_path / "cooccurrence_rank1.safetensors")
    both = read_load([tmp_path], MODEL)
    assert both.trace is not None
    assert both.trace.experts_LTK.shape[2] == 2
    assert both.tokens_WLE.tolist() == alone.tokens_WLE.tolist()


def test_ids_that_do_not_fit_the_counts_are_not_used(tmp_path: Path) -> None:
    """The counts are, and a note says why there is no trace: other tokens, a rank without ids."""
    with_ids(tmp_path, {0: [routed(5), routed(6)], 1: [routed(3, seed=3), routed(4, seed=4)]})
    name = tmp_path / "token_selected_experts_rank1.safetensors"
    save_file({f"{number}_{layer}": routed(9)[:, 1] for number in (5, 6) for layer in (1, 2)}, name)
    other = read_load([tmp_path], MODEL)
    assert (other.trace, other.tokens_WLE.sum()) == (None, 18 * 2 * 2)
    assert any("not those that were counted" in note for note in other.notes)
    name.unlink()
    assert any(
        "token_selected_experts_rank1.safetensors is missing" in note
        for note in read_load([tmp_path], MODEL).notes
    )


@pytest.mark.parametrize(
    ("counts", "meta", "message"),
    [
        ({"5_1": [1, 2, 3]}, None, r"5_1 has shape \[3\]"),
        ({"five": [1, 2, 3, 4]}, None, "'five' is not iteration_layer"),
        ({"5_1": [1, -2, 3, 4]}, None, r"5_1: window 0, layer 1, column 1: the count is -2.*wrapped"),
        ({}, None, "hold no counts"),
        ({"5_1": []}, None, r"5_1 has shape \[0\]"),
        (RANK0, {"num_experts": 4, "num_experts_per_token": 8}, r"8 experts a token, but small chooses 2"),
        (RANK0, {"num_experts": "4"}, "must be whole numbers"),
        ({"5_0": [1, 1, 1, 1], **RANK0}, None, r"layer 0 has assignments, but small has no experts there"),
    ],
    ids=["row length", "key", "wrapped", "empty", "empty row", "top_k", "meta", "a dense layer"],
)
def test_damaged_statistics_are_refused(
    tmp_path: Path, counts: dict[str, list[int]], meta: dict[str, Any] | None, message: str
) -> None:
    """One line that names the file and the key."""
    folder(tmp_path, {0: counts}, meta)
    with pytest.raises(BadInput, match=message):
        read_load([tmp_path], MODEL)
