"""Figures and the picture of a load."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.load import LoadProfile
from planner.report.load import LayerSkew, heatmap, skew_rows


def of(*rows: list[int], unmeasured: tuple[int, ...] = ()) -> LoadProfile:
    """A load of one window with these layer rows."""
    return LoadProfile(np.array([rows]), tuple(range(len(rows))), "by hand", unmeasured_layer_ids=unmeasured)


def test_an_even_layer_is_balanced() -> None:
    """Max over mean is 1, and all experts count in full."""
    (row,) = skew_rows(of([5] * 20))
    assert row.max_over_mean == pytest.approx(1)
    assert row.hottest_tenth_share == pytest.approx(0.1)
    assert row.effective_experts == pytest.approx(20)


def test_a_skewed_layer_by_hand() -> None:
    """[4, 2, 1, 1]: mean 2, hottest tenth = 1 expert = half, entropy 1.75 bits."""
    (row,) = skew_rows(of([1, 4, 2, 1]))
    assert (row.total, row.hottest_expert) == (8, 1)
    assert row.max_over_mean == pytest.approx(2)
    assert row.hottest_tenth_share == pytest.approx(0.5)
    assert row.effective_experts == pytest.approx(2**1.75)


def test_the_lower_id_is_the_hottest_in_a_tie() -> None:
    """Same input, same output."""
    assert skew_rows(of([1, 3, 3]))[0].hottest_expert == 1


def test_a_layer_without_signal_has_no_figures() -> None:
    """C03: a zero row must not enter an average as a balanced one."""
    assert skew_rows(of([1, 1], [0, 0]))[1] == LayerSkew(1, True, 0, None, None, None, None)


def test_rows_that_were_not_measured_are_marked() -> None:
    """A filled row is never shown as a measurement, in the figures or in the picture."""
    load = of([1, 1], [1, 1], unmeasured=(1,))
    assert [row.measured for row in skew_rows(load)] == [True, False]
    first, second, *legend = heatmap(load).splitlines()
    assert "~" not in first
    assert "~" in second
    assert "~ not measured" in " ".join(legend)


def test_the_block_shows_load_over_the_mean() -> None:
    """Nothing, half of the mean, the mean and twice the mean."""
    line = heatmap(of([0, 2, 4, 8, 6, 4, 4, 4]), width=20).splitlines()[0]
    assert line == " 0  │ ▂▄▇▆▄▄▄│"


def test_a_bin_shows_its_hottest_expert() -> None:
    """One hot expert among hundreds must not vanish in an average."""
    line = heatmap(of([*[1] * 255, 1000]), width=40).splitlines()[0]
    assert line[-2] == "█"
    assert "█" not in line[:-2]


def test_a_silent_layer_is_drawn_as_dashes() -> None:
    """It is neither cold nor even."""
    assert heatmap(of([1, 1], [0, 0]), width=20).splitlines()[1] == " 1  │--------│"


@given(
    experts=st.integers(1, 300),
    layers=st.integers(1, 4),
    width=st.integers(20, 200),
    ascii_only=st.booleans(),
    seed=st.integers(0, 99),
)
def test_the_picture_fits(experts: int, layers: int, width: int, ascii_only: bool, seed: int) -> None:
    """No line is wider than the terminal, each layer has its own, and ASCII is ASCII."""
    tokens_WLE = np.random.default_rng(seed).integers(0, 50, (1, layers, experts))
    picture = heatmap(LoadProfile(tokens_WLE, tuple(range(layers)), "random"), width, ascii_only=ascii_only)
    lines = picture.splitlines()
    assert max(map(len, lines)) <= width
    assert [int(line.split()[0]) for line in lines[:layers]] == list(range(layers))
    assert picture.isascii() or not ascii_only
