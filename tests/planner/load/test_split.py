"""Windows held out and windows merged."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput
from planner.load import LoadProfile, Trace, merge_windows, split_notes, split_windows, window_groups


def numbered(windows: int) -> LoadProfile:
    """Window w holds the counts [w + 1, 1], and its sequence has w + 1 tokens."""
    tokens_WLE = np.array([[[window + 1, 1]] for window in range(windows)])
    lengths = tuple(range(1, windows + 1))
    trace = Trace(np.arange(sum(lengths), dtype=np.int32).reshape(1, -1, 1), lengths)
    return LoadProfile(
        tokens_WLE,
        (0,),
        "by hand",
        window_names=tuple(f"w{window}" for window in range(windows)),
        trace=trace,
    )


@pytest.mark.parametrize(("windows", "fitted"), [(2, 1), (3, 2), (4, 3), (5, 3), (6, 4), (9, 6)])
def test_the_last_third_is_held_out(windows: int, fitted: int) -> None:
    """Order is time: what comes last was not seen when the plan was made."""
    first, last = split_windows(numbered(windows))
    assert last is not None
    assert first.window_names + last.window_names == numbered(windows).window_names
    assert first.windows == fitted


def test_one_window_cannot_be_split() -> None:
    """There is nothing to hold out, and that is said by None rather than by an empty load."""
    load = numbered(1)
    assert split_windows(load) == (load, None)


def test_a_trace_is_split_by_sequence() -> None:
    """No token of a held-out sequence is fitted to."""
    first, last = split_windows(numbered(3))
    assert first.trace is not None
    assert last is not None
    assert last.trace is not None
    assert first.trace.experts_LTK.ravel().tolist() == [0, 1, 2]
    assert last.trace.experts_LTK.ravel().tolist() == [3, 4, 5]


@pytest.mark.parametrize("held_out", [-0.1, 1.0, float("nan")])
def test_a_share_that_leaves_nothing_to_fit_is_refused(held_out: float) -> None:
    """All, less than nothing, or no number at all."""
    with pytest.raises(BadInput, match="held-out share"):
        split_windows(numbered(3), held_out)


def test_either_side_keeps_a_window() -> None:
    """Rounding never empties a side."""
    first, last = split_windows(numbered(3), held_out=0.99)
    assert last is not None
    assert (first.windows, last.windows) == (1, 2)


@given(windows=st.integers(1, 60), at_most=st.integers(1, 20))
def test_merging_keeps_every_assignment_and_token(windows: int, at_most: int) -> None:
    """Totals and trace stay, windows do not pass the limit, and sequences sum to their windows."""
    load = numbered(windows)
    merged = merge_windows(load, at_most)
    assert merged.windows == min(windows, at_most)
    assert np.array_equal(merged.total_LE, load.total_LE)
    assert merged.trace is not None
    assert load.trace is not None
    assert np.array_equal(merged.trace.experts_LTK, load.trace.experts_LTK)
    # window w holds w + 1 tokens and as many assignments to expert 0
    assert merged.tokens_WLE[:, 0, 0].tolist() == list(merged.trace.sequence_lengths)


def test_merged_windows_are_neighbours_and_say_so() -> None:
    """Names show the span, and a note says that windows were merged."""
    merged = merge_windows(numbered(5), at_most=2)
    assert merged.window_names == ("w0..w1", "w2..w4")
    assert merged.notes == ("5 windows merged into 2, neighbours together",)


def test_merging_into_no_windows_is_refused() -> None:
    """At least one window has to remain."""
    with pytest.raises(BadInput, match="at least 1"):
        merge_windows(numbered(2), at_most=0)


def domains(*sizes: int) -> LoadProfile:
    """Windows of one expert with the counts 0, 1, 2, ..., so many in each domain."""
    counts_WLE = np.arange(sum(sizes), dtype=np.int64)[:, None, None]
    return LoadProfile(
        counts_WLE,
        (0,),
        "made up for tests",
        domains=tuple(f"d{index}" for index, size in enumerate(sizes) for _ in range(size)),
    )


def test_every_domain_is_held_out_in_part() -> None:
    """The last third of each; a domain of one window is fitted, and said to be judged on nothing."""
    fitted, held_out = split_windows(domains(6, 3, 1))
    assert held_out is not None
    assert fitted.tokens_WLE.ravel().tolist() == [0, 1, 2, 3, 6, 7, 9]
    assert held_out.tokens_WLE.ravel().tolist() == [4, 5, 8]
    assert (fitted.domains, held_out.domains) == (("d0",) * 4 + ("d1",) * 2 + ("d2",), ("d0", "d0", "d1"))
    assert split_notes(fitted, held_out) == ("d2: one window only, so nothing of it is held out",)


def test_domains_of_one_window_are_a_series() -> None:
    """Whole domains are held out then, which is said."""
    fitted, held_out = split_windows(domains(1, 1, 1))
    assert held_out is not None
    assert (fitted.domain_names, held_out.domain_names) == (("d0", "d1"), ("d2",))
    assert "d2: held out whole" in split_notes(fitted, held_out)[0]


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4), at_most=st.integers(1, 5))
def test_groups_cover_all_windows_in_order(sizes: list[int], at_most: int) -> None:
    """Neighbours, each window once, no group across domains, sizes in a domain one apart at most."""
    load = domains(*sizes)
    groups = window_groups(load, at_most)
    assert [window for first, end in groups for window in range(first, end)] == list(range(load.windows))
    assert all(len(set(load.domains[first:end])) == 1 for first, end in groups)
    for name, size in zip(load.domain_names, sizes, strict=True):
        lengths = [end - first for first, end in groups if load.domains[first] == name]
        assert len(lengths) == min(size, at_most)
        assert max(lengths) - min(lengths) <= 1
