"""SGLang's per_pass and per_token dumps: ranks summed, slots made experts, every trap named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.base import BadInput
from planner.load import read_load
from tests.planner.load.dumps.files import MODEL, counted, passes, routed, slots_of, torch


@pytest.mark.parametrize("tokens", [False, True], ids=["per_pass", "per_token"])
def test_passes_of_two_ranks_are_summed_and_made_logical(tmp_path: Path, tokens: bool) -> None:
    """Both modes give the counts of the logical ids that were chosen, a window a forward pass."""
    ids = {(rank, number): routed(5, seed=10 * rank + number) for rank in (0, 1) for number in (7, 9)}
    files = [
        passes(tmp_path, rank, {number: slots_of(ids[rank, number]) for number in (7, 9)}, tokens=tokens)
        for rank in (0, 1)
    ]
    load = read_load(files, MODEL)
    assert load.tokens_WLE.tolist() == [
        (counted(ids[0, number]) + counted(ids[1, number])).tolist() for number in (7, 9)
    ]
    assert load.window_names == ("7", "9")
    assert (load.trace is not None, load.phase) == (tokens, "prefill" if tokens else "unknown")


def test_per_token_ids_are_the_trace(tmp_path: Path) -> None:
    """Ranks in order within a pass; logical ids; the columns past top_k and padded rows are not there."""
    ids_TLK = routed(4)
    slots_TLK = slots_of(ids_TLK)
    padded = np.concatenate([slots_TLK, slots_TLK[:1]])
    path = passes(tmp_path, 0, {0: padded}, tokens=True)
    value = torch.load(path)
    value["records"][0]["topk_ids_of_layer"][:, 4] = -1
    torch.save(value, path)
    load = read_load([path], MODEL)
    assert load.trace is not None
    assert np.array_equal(load.trace.experts_LTK, ids_TLK.transpose(1, 0, 2)[1:])
    assert any("1 rows of ids are padding" in note for note in load.notes)


def test_passes_that_open_alike_keep_their_tokens(tmp_path: Path) -> None:
    """A forward pass is no sequence: equal first tokens are traffic, not a common prompt to be dropped."""
    path = passes(tmp_path, 0, {0: routed(8), 1: np.concatenate([routed(8), routed(4, seed=3)])}, tokens=True)
    assert read_load([path], MODEL).tokens_WLE.sum() == (8 + 12) * 2 * 2


def test_missing_ranks_are_named(tmp_path: Path) -> None:
    """C18: ranks 0 and 2 without 1, and a pass that one of them lacks."""
    first = passes(tmp_path, 0, {0: routed(5), 1: routed(5, seed=1)})
    notes = read_load([first, passes(tmp_path, 2, {0: routed(5, seed=2)})], MODEL).notes
    assert any("rank 1 missing" in note for note in notes)
    assert any("passes 1 were not recorded by every rank" in note for note in notes)


def test_slots_that_nobody_counted_are_named(tmp_path: Path) -> None:
    """In low-latency mode a rank counts its own slots alone: without its file they stay zero."""
    assert any(
        "slots 4-5 have no count in any layer" in note
        for note in read_load([passes(tmp_path, 0, {0: routed(20)})], MODEL).notes
    )


def test_ranks_that_counted_the_same_tokens_are_refused(tmp_path: Path) -> None:
    """C18 C: without an all-to-all every rank sees all tokens; one rank's file alone is taken."""
    files = [passes(tmp_path, rank, {0: routed(5)}) for rank in (0, 1)]
    with pytest.raises(BadInput, match=r"rank 0 .* and rank 1 .* hold identical counts"):
        read_load(files, MODEL)
    assert read_load(files[:1], MODEL).tokens_WLE.tolist() == [counted(routed(5)).tolist()]
    same, both = (read_load(files, MODEL, ranks=ranks) for ranks in ("same", "sum"))
    assert same.tokens_WLE.tolist() == [counted(routed(5)).tolist()]
    assert both.tokens_WLE.tolist() == [(2 * counted(routed(5))).tolist()]
    assert not any("counts are partial" in note for note in same.notes)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda value: value.pop("last_physical_to_logical_map"),
            "'last_physical_to_logical_map' is missing",
        ),
        (
            lambda value: value.update(last_physical_to_logical_map=torch.tensor([[0, 1, 2, 3, 0, 4]] * 3)),
            "holds expert 4",
        ),
        (
            lambda value: value.update(last_physical_to_logical_map=torch.tensor([[0, 1, 2, 3]] * 3)),
            "6 counts a layer, but .* maps 4 slots",
        ),
        (lambda value: value.update(records=[]), "'records' is empty"),
        (lambda value: value["records"][0].pop("global_physical_count"), "no 'global_physical_count'"),
        (lambda value: value["records"][0].update(rank="x"), "rank 'x'"),
        (
            lambda value: value["records"][0]["global_physical_count"].__setitem__((1, 2), -3),
            r"layer 1, column 2: the count is -3",
        ),
        (
            lambda value: value["records"][0].update(
                topk_ids_of_layer=torch.zeros(3, 5, 8, dtype=torch.int32)
            ),
            "tokens do not have 2 ids",
        ),
    ],
    ids=[
        "no map",
        "map of another model",
        "map of another slot count",
        "nothing recorded",
        "no counts",
        "no rank",
        "wrapped",
        "top_k of another",
    ],
)
def test_damaged_passes_are_refused(tmp_path: Path, spoil: Any, message: str) -> None:
    """One line, with the file and what is wrong in it.

    A negative count is found before a sum could hide it.
    """
    path = passes(tmp_path, 0, {0: routed(5)})
    value = torch.load(path)
    spoil(value)
    torch.save(value, path)
    with pytest.raises(BadInput, match=message) as caught:
        read_load([path], MODEL)
    assert "\n" not in str(caught.value)


def test_files_of_two_recordings_are_refused(tmp_path: Path) -> None:
    """Ranks dumped under different maps, and one rank's pass in two files."""
    first = passes(tmp_path, 0, {0: routed(5)})
    with pytest.raises(BadInput, match="dumped under different maps"):
        read_load(
            [first, passes(tmp_path, 1, {0: routed(5, seed=1)}, slot_map=[[1, 0, 2, 3, 0, 1]] * 3)], MODEL
        )
    with pytest.raises(BadInput, match="both hold pass 0 of rank 0"):
        read_load([first, passes(tmp_path, 0, {0: routed(5, seed=1)}, name="again.pt")], MODEL)
    with pytest.raises(BadInput, match="given twice"):
        read_load([first, first], MODEL)
