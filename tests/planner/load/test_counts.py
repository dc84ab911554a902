"""Counts: which are believed, to the last one, and how those that are not are named."""

import numpy as np
import pytest

from planner.base import BadInput
from planner.load import read_load
from planner.load.doubts import check_shares
from planner.model import find_model
from tests.planner.load.files import Saver, model


def test_a_zero_layer_is_said_to_have_no_signal(save: Saver) -> None:
    """C03: the counts stay zero (no balance figure is made up), the shares are even, and the note names
    the layer.
    """
    load = read_load([save("load.json", [[0] * 8, [8, 7, 6, 5, 4, 3, 2, 1]])], model(experts=8))
    assert load.notes == ("layer 1: no assignments; treated as evenly loaded",)
    assert load.total_LE[0].sum() == 0
    assert load.shares_LE[0].tolist() == [1 / 8] * 8


def test_nothing_but_zeros_is_refused(save: Saver) -> None:
    """A load without one assignment answers nothing."""
    with pytest.raises(BadInput, match="every count is zero"):
        read_load([save("load.json", [[0] * 4, [0] * 4])], model())


CELL = r"load\.\w+: window 0, layer 2, expert 1: the count is "


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "nan; counts are finite"),
        (float("inf"), "inf; counts are finite"),
        (-(2**31), "-2147483648; counts cannot be negative .*int32"),
        (2.5, "2.5; counts are whole numbers"),
        (float(2**53), r"9007199254740992\.0; .*no longer exact"),
        (2**63, r"9\.223372036854776e\+18; .*no longer exact"),
        (2**64, "18446744073709551616; .*no longer exact"),
        (None, "None; counts are whole numbers"),
        ("7", "7; counts are whole numbers"),
    ],
)
def test_what_is_no_count_is_refused_by_its_place(save: Saver, value: object, message: str) -> None:
    """C04, C05: file, window, layer, expert and value, in JSON."""
    with pytest.raises(BadInput, match=CELL + message):
        read_load([save("load.json", [[1, 2, 3, 4], [1, value, 3, 4]])], model())


@pytest.mark.parametrize("text", ["nan", "inf", "-5", "2.5", "1e300", "99999999999999999999", "9" * 5000])
def test_what_is_no_count_is_refused_in_csv(save: Saver, text: str) -> None:
    """The same cells as text."""
    with pytest.raises(BadInput, match=r"layer 2, expert 1: the count is "):
        read_load([save("load.csv", f"layer,expert,count\n1,0,1\n2,0,1\n2,1,{text}\n")], model())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_arrays_of_whole_floats_are_accepted(save: Saver, dtype: str) -> None:
    """Some recorders save floats; whole ones in the exact range are counts."""
    assert (
        read_load([save("load.npz", counts=np.full((2, 4), 3, dtype=dtype))], model()).total_LE.tolist()
        == [[3] * 4] * 2
    )


@pytest.mark.parametrize(
    "bad",
    [
        np.float32(2**24),
        np.uint64(2**63),
        np.int32(-1),
        np.bool_(True),
        np.complex64(1),
        np.datetime64("2020-01-01"),
        np.str_("x"),
    ],
)
def test_arrays_of_other_types_or_past_their_exact_range_are_refused(save: Saver, bad: np.generic) -> None:
    """A float32 no longer tells 2^24 from 2^24 + 1, so a count of that size cannot be believed."""
    with pytest.raises(BadInput, match=r"window 0, layer 1, expert 0: the count is "):
        read_load([save("load.npz", counts=np.full((2, 4), bad))], model())


def test_counts_never_pass_through_float32(save: Saver) -> None:
    """C05: 16777216 and 16777217 stay different, and counts past int32 are kept."""
    load = read_load([save("load.json", [[16777216, 16777217, 2**31, 2**32], [1, 1, 1, 1]])], model())
    assert load.total_LE[0].tolist() == [16777216, 16777217, 2**31, 2**32]


def test_a_sum_past_int64_is_refused(save: Saver) -> None:
    """Each count fits, their sum does not."""
    with pytest.raises(BadInput, match=r"sum to .* past 2\^63"):
        read_load([save("load.json", [[2**62, 2**62, 0, 0], [1, 1, 1, 1]])], model())


def test_a_row_whose_total_is_off_is_noted(save: Saver) -> None:
    """C26: padding, warm-up or partial ranks; 1 % is the limit."""
    off = read_load([save("off.json", [[66, 67, 67, 0], [66, 67, 67, 0], [68, 68, 67, 0]])], model(layers=4))
    assert any(
        note.startswith("layer 3: totals differ from the median over layers by up to 1.5%")
        for note in off.notes
    )
    near = read_load(
        [save("near.json", [[66, 67, 67, 0], [66, 67, 67, 0], [67, 68, 67, 0]])], model(layers=4)
    )
    assert near.notes == ()


@pytest.mark.parametrize(("hot", "said"), [(500, False), (501, True), (900, True)])
def test_an_expert_cannot_be_chosen_twice_by_a_token(save: Saver, hot: int, said: bool) -> None:
    """Of 1,000 assignments at top-2 no expert has more than 500: more is named, whoever wrote the file."""
    row = [hot, 1000 - hot, 0, 0]
    notes = read_load([save("load.json", [row, [250] * 4])], model()).notes
    named = [note for note in notes if note.startswith("WARNING") and f"expert 0 has {hot} of 1,000" in note]
    assert bool(named) == said
    assert "1 in 2" in named[0] if said else True


def test_few_assignments_prove_nothing(save: Saver) -> None:
    """Counts by hand are no traffic."""
    assert not read_load([save("load.json", [[9, 1, 0, 0], [5, 5, 0, 0]])], model()).notes


def test_a_dump_that_cannot_be_is_refused() -> None:
    """What an engine wrote is traffic: an expert with nine tenths of top-2 was read wrongly, or in part."""
    counts = np.array([[[900, 100, 0, 0]]])
    with pytest.raises(BadInput, match="missing ranks"):
        check_shares("dump", counts, (1,), model(), dumped=True)
    assert check_shares("dump", np.array([[[510, 490, 0, 0]]]), (1,), model(), dumped=True)


def test_a_load_that_names_another_model_is_refused(save: Saver) -> None:
    """The same shape is not the same router; a name that nobody knows may be this model's."""
    spec = find_model("deepseek-v3")
    counts = np.full((58, 256), 8)
    with pytest.raises(BadInput, match="recorded on deepseek-ai/DeepSeek-R1"):
        read_load([save("r1.npz", counts=counts, model=np.array("deepseek-ai/DeepSeek-R1"))], spec)
    assert read_load([save("mine.npz", counts=counts, model=np.array("my-folder"))], spec).windows == 1
