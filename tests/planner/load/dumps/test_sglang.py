"""SGLang's dumps: every count where it belongs, and every trap named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.base import BadInput
from planner.load import read_load
from tests.planner.load.dumps.files import MODEL, counted, routed, stat, step

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
    """A length that does not divide; ids in the dense layer; a server that captured nothing."""
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
