"""LoadProfile: checked once, frozen, and what is derived from it."""

import numpy as np
import pytest

from planner.base import BadInput
from planner.load import LoadProfile, Trace

TWO_WINDOWS = np.array([[[3, 1], [2, 2]], [[1, 0], [0, 1]]])


def test_counts_of_windows_add_up() -> None:
    """Totals are per layer and expert, over windows."""
    load = LoadProfile(TWO_WINDOWS.copy(), (0, 5), "by hand")
    assert load.total_LE.tolist() == [[4, 1], [2, 3]]


def test_a_layer_without_signal_has_even_shares() -> None:
    """C03: a zero row is no load pattern; it is spread evenly, and the other layer keeps its own shares."""
    load = LoadProfile(np.array([[[0, 0, 0, 0], [3, 1, 0, 0]]]), (3, 4), "by hand")
    assert load.shares_LE.tolist() == [[0.25] * 4, [0.75, 0.25, 0, 0]]


def test_a_negative_count_is_refused_by_its_place() -> None:
    """C05: the cell and the likely int32 wrap are named."""
    with pytest.raises(BadInput, match=r"window 0, layer 7, expert 1 has the count -2147483648.*int32"):
        LoadProfile(np.array([[[5, -(2**31)]]]), (7,), "by hand")


@pytest.mark.parametrize("layer_ids", [(1,), (1, 1), (2, 1)])
def test_layer_ids_are_as_many_as_rows_distinct_and_ascending(layer_ids: tuple[int, ...]) -> None:
    """A row whose layer is not certain is not a measurement."""
    with pytest.raises(BadInput, match="distinct, ascending layer ids"):
        LoadProfile(TWO_WINDOWS.copy(), layer_ids, "by hand")


def test_floats_are_a_fault_of_ours() -> None:
    """Readers convert; a float that comes this far is a bug, not bad input."""
    with pytest.raises(TypeError, match="int64"):
        LoadProfile(np.ones((1, 1, 2)), (0,), "by hand")  # type: ignore[arg-type]


def test_window_names_are_as_many_as_windows() -> None:
    """A name that belongs to no window would be printed beside the wrong figures."""
    with pytest.raises(BadInput, match="2 windows need as many names; got 1"):
        LoadProfile(TWO_WINDOWS.copy(), (0, 5), "by hand", window_names=("a",))


def test_a_trace_has_a_row_a_layer_and_a_sequence_a_window() -> None:
    """A trace that is not the profile's own cannot be attached."""
    trace = Trace(np.zeros((1, 2, 1), dtype=np.int32), (1, 1))
    with pytest.raises(ValueError, match="one sequence a window"):
        LoadProfile(TWO_WINDOWS.copy(), (0, 5), "by hand", trace=trace)


def test_an_unrecorded_row_of_a_trace_is_told() -> None:
    """-1 everywhere in a row: that layer was not recorded."""
    trace = Trace(np.array([[[0], [1]], [[-1], [-1]]], dtype=np.int32), (2,))
    assert trace.recorded_L.tolist() == [True, False]


def test_chosen_windows_take_their_names_and_sequences_along() -> None:
    """A window of a traced load is one sequence: counts, name and tokens stay together."""
    trace = Trace(np.array([[[0], [0], [1]], [[1], [0], [1]]], dtype=np.int32), (2, 1))
    load = LoadProfile(TWO_WINDOWS.copy(), (0, 5), "by hand", window_names=("a", "b"), trace=trace)
    second = load.with_windows([1])
    assert second.trace is not None
    assert second.tokens_WLE.tolist() == [[[1, 0], [0, 1]]]
    assert second.window_names == ("b",)
    assert second.trace.experts_LTK.tolist() == [[[1]], [[1]]]
    assert second.trace.sequence_lengths == (1,)


def test_counts_cannot_be_changed_afterwards() -> None:
    """Frozen means the array too."""
    load = LoadProfile(TWO_WINDOWS.copy(), (0, 5), "by hand")
    with pytest.raises(ValueError, match="read-only"):
        load.tokens_WLE[0, 0, 0] = 9


def test_a_long_trace_is_thinned_evenly() -> None:
    """Every sequence gives its share of the tokens that are kept, in order; token i has the expert i here."""
    lengths = (1000, 9000, 20000)
    trace = Trace(np.arange(sum(lengths), dtype=np.int32)[None, :, None], lengths)
    kept = trace.thinned(4095)
    found_T = kept.experts_LTK[0, :, 0]
    assert len(found_T) == 4095
    assert set(np.diff(found_T).tolist()) == {7, 8}
    shares = [length / sum(lengths) * 4095 for length in lengths]
    assert kept.sequence_lengths == pytest.approx(shares, abs=1)
