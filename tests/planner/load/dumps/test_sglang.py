"""SGLang's dumps: every count where it belongs, and every trap named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.base import BadInput
from planner.load import read_load
from tests.planner.load.dumps.files import MODEL, counted, passes, routed, slots_of, stat, step, torch

WINDOW = step([4, 2, 1, 1], [2, 2, 2, 2])


def test_stat_keeps_the_steps_that_were_used(tmp_path: Path) -> None:
    """Unused steps of the circular buffer and the dense layer's rows are left out, and both are said."""
    load = read_load(
        [stat(tmp_path, [WINDOW, step([3, 2, 2, 1], [1, 3, 2, 2]), step([0] * 4, [0] * 4)])], MODEL
    )
    assert load.tokens_WLE.tolist() == [[[4, 2, 1, 1], [2, 2, 2, 2]], [[3, 2, 2, 1], [1, 3, 2, 2]]]
    assert (load.layer_ids, load.window_unit) == ((1, 2), "forward pass")
    assert any("1 of 3 buffered steps are zero" in note for note in load.notes)
    assert not any("wrapped around" in note for note in load.notes)


@pytest.mark.parametrize(
    "steps", [[WINDOW] * 3, [WINDOW, step([0] * 4, [0] * 4), WINDOW]], ids=["full", "a gap inside"]
)
def test_a_buffer_that_may_have_wrapped_is_noted(tmp_path: Path, steps: list[Any]) -> None:
    """A full buffer may have lost its oldest steps; after a dump the engine goes on in the middle of it."""
    assert any("wrapped around" in note for note in read_load([stat(tmp_path, steps)], MODEL).notes)


def test_stat_of_slots_is_never_mapped(tmp_path: Path) -> None:
    """The engine has made it logical already: a map given for it is refused, not applied a second time."""
    from planner.load import slot_map

    with pytest.raises(BadInput, match="no map is needed"):
        read_load([stat(tmp_path, [WINDOW])], MODEL, slot_map([[3, 2, 1, 0]] * 3, "map.json", 4))


def test_the_same_stat_from_two_ranks_is_refused(tmp_path: Path) -> None:
    """C18: replicas of one counter are not summed in silence."""
    first, second = stat(tmp_path, [WINDOW]), stat(tmp_path, [WINDOW], "other.pt", rank=1)
    with pytest.raises(
        BadInput, match=r"expert_distribution.*other\.pt hold identical counts.*give one of the two"
    ):
        read_load([first, second], MODEL)
    one, same, both = (
        read_load([first, *more], MODEL, ranks=ranks)
        for more, ranks in (([], None), ([second], "same"), ([second], "sum"))
    )
    assert (same.tokens_WLE.tolist(), both.windows) == (one.tokens_WLE.tolist(), 2)
    assert any("other.pt holds the counts of" in note for note in same.notes)


def test_a_wrapped_counter_is_refused(tmp_path: Path) -> None:
    """C05: an int32 that wrapped is named with its window, layer and expert."""
    with pytest.raises(BadInput, match=r"window 0, layer 1, expert 0: the count is -2147483648.*wrapped"):
        read_load([stat(tmp_path, [step([-(2**31), 5, 4, 3], [2, 2, 2, 2])])], MODEL)


def test_an_empty_buffer_is_refused(tmp_path: Path) -> None:
    """A dump right after a dump holds nothing, which is no even load."""
    with pytest.raises(BadInput, match="all 2 steps are zero"):
        read_load([stat(tmp_path, [step([0] * 4, [0] * 4)] * 2)], MODEL)


def test_dummy_tokens_and_a_small_opening_are_noted(tmp_path: Path) -> None:
    """C26: warm-up passes route every token alike; they are not dropped, but named."""
    load = read_load([stat(tmp_path, [step([8, 8, 0, 0], [0, 0, 8, 8]), WINDOW, WINDOW])], MODEL)
    assert any("windows 0: every token chooses the same 2 experts" in note for note in load.notes)
    small = read_load(
        [stat(tmp_path, [step([1, 1, 0, 0], [1, 0, 1, 0]), *[step([40, 20, 10, 10], [20] * 4)] * 3])], MODEL
    )
    assert any("first 1 windows hold less than 10%" in note for note in small.notes)


def test_layers_that_were_padded_are_noted(tmp_path: Path) -> None:
    """C26: a layer whose total differs is named, and so is a total that no whole number of tokens gives."""
    notes = read_load([stat(tmp_path, [step([4, 2, 1, 1], [20, 2, 2, 3])])], MODEL).notes
    assert any("suspect padding" in note for note in notes)
    assert any("27 assignments are no multiple of the 2" in note for note in notes)


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
    """In low-latency mode a rank counts its own slots alone, so a file that is not there leaves them at zero."""
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
    """One line, with the file and what is wrong in it. A negative count is found before a sum could hide it."""
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


def test_requests_are_one_trace(tmp_path: Path) -> None:
    """Raw int32 [token, decoder layer, k], one file a request, also as the base64 text of the HTTP answer."""
    import base64

    (tmp_path / "a.bin").write_bytes(routed(5).tobytes())
    (tmp_path / "b.b64").write_bytes(base64.b64encode(routed(3, seed=1).tobytes()) + b"\n")
    load = read_load([tmp_path / "a.bin", tmp_path / "b.b64"], MODEL)
    assert load.trace is not None
    assert (load.trace.sequence_lengths, load.window_names, load.window_unit) == (
        (5, 3),
        ("a", "b"),
        "request",
    )
    assert load.tokens_WLE.tolist() == [counted(routed(5)).tolist(), counted(routed(3, seed=1)).tolist()]


def test_raw_ids_of_another_model_are_refused(tmp_path: Path) -> None:
    """A length that does not divide; a shape that puts ids into the dense layer; a server that captured nothing."""
    path = tmp_path / "a.bin"
    path.write_bytes(routed(5).tobytes()[:-4])
    with pytest.raises(BadInput, match="no multiple of 24"):
        read_load([path], MODEL)
    path.write_bytes(np.roll(routed(6), 1, axis=1).tobytes())
    with pytest.raises(BadInput, match="decoder layer 0 of small is dense"):
        read_load([path], MODEL)
    path.write_bytes(np.zeros((6, 3, 2), dtype=np.int32).tobytes())
    with pytest.raises(BadInput, match="no token has expert ids"):
        read_load([path], MODEL)
