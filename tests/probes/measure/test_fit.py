"""The line through a sweep of sizes: exact where the data are, and no answer where there is none.

Steady against outliers and the bend at small sizes.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput
from probes.base.facts import MeasureFacts, Sample
from probes.measure.fit import GOOD_ERROR, Fit, fit, fit_facts

SIZES = [float(1 << power) for power in range(20, 29)]


def line(alpha: float, bytes_per_s: float, sizes: list[float] = SIZES) -> list[float]:
    return [alpha + size / bytes_per_s for size in sizes]


@given(st.floats(0, 1e-3), st.floats(1e7, 1e12))
def test_a_line_is_found_exactly(alpha: float, bytes_per_s: float) -> None:
    """Start-up and rate, whatever their scale, without error or dropped sizes."""
    found = fit(SIZES, line(alpha, bytes_per_s), "x")
    assert found.bytes_per_s == pytest.approx(bytes_per_s, rel=1e-6)
    assert found.alpha_seconds == pytest.approx(alpha, rel=1e-4, abs=1e-6 * SIZES[0] / bytes_per_s)
    assert (found.dropped, found.sizes) == (0, len(SIZES))
    assert max(found.error, found.held_out_error) < 1e-6


def test_one_outlier_hardly_moves_the_rate() -> None:
    """A size that took 30 % longer: plain least squares of relative errors would be off by more than ten
    times as much.
    """
    seconds = line(20e-6, 50e9)
    seconds[5] *= 1.3
    assert fit(SIZES, seconds, "x").bytes_per_s == pytest.approx(50e9, rel=0.01)


def test_noise_of_a_few_percent_is_told() -> None:
    """The mean error is that of the noise, the held-out error not much more, the rate close."""
    noise = np.random.default_rng(0).normal(1, 0.02, len(SIZES))
    found = fit(SIZES, (np.array(line(20e-6, 50e9)) * noise).tolist(), "x")
    assert found.bytes_per_s == pytest.approx(50e9, rel=0.02)
    assert 0.005 < found.error <= found.held_out_error < GOOD_ERROR


def test_small_sizes_of_another_law_are_left_out() -> None:
    """Below 8 MB the machine is four times as slow a byte: the rate is that of the large ones, and the fit
    says from where it holds.
    """
    seconds = [size / 50e9 if size >= 8 << 20 else 4 * size / 50e9 for size in SIZES]
    found = fit(SIZES, seconds, "x")
    assert found.bytes_per_s == pytest.approx(50e9, rel=1e-3)
    assert (found.dropped, found.from_bytes, found.to_bytes) == (3, 8 << 20, 1 << 28)


def test_a_start_up_below_zero_is_none() -> None:
    """Bursts make small messages faster than the link: α stays 0 and the rate is fitted alone."""
    found = fit([1e6, 2e6, 4e6], [0.95e-3, 2e-3, 4.1e-3], "x")
    assert found.alpha_seconds == 0
    assert found.bytes_per_s == pytest.approx(1e9, rel=0.05)


def test_a_size_measured_twice_is_one_size() -> None:
    """Its median counts, and two sizes stay two."""
    with pytest.raises(BadInput, match="x: start-up and rate need at least 3 sizes, it has 2"):
        fit([1e6, 1e6, 1e6, 2e6], [1, 1, 1, 2], "x")


@pytest.mark.parametrize(
    ("sizes", "seconds", "says"),
    [
        ([], [], "need at least 3 sizes, it has 0"),
        ([1e6, 2e6], [1, 2], "need at least 3 sizes, it has 2"),
        ([0, 0, 1e6], [1, 1, 1], "need at least 3 sizes, it has 1"),
        ([1e6, 2e6, 4e6], [4, 2, 1], "larger messages do not take longer"),
    ],
)
def test_no_rate_comes_from_too_little(sizes: list[float], seconds: list[float], says: str) -> None:
    """One line that says what to measure."""
    with pytest.raises(BadInput, match=says):
        fit(sizes, seconds, "x")


def test_the_share_of_the_size_is_what_crossed_the_link() -> None:
    """Of an all-to-all over two hosts half goes to the other: half the size's rate.

    In-place rows do not count.
    """
    samples = [
        Sample(int(size), seconds, 0, 0, 0, in_place=False)
        for size, seconds in zip(SIZES, line(0, 100e9), strict=True)
    ]
    wrong = [Sample(int(size), 1.0, 0, 0, 0, in_place=True) for size in SIZES]
    facts = MeasureFacts("x", "nccl-tests", "alltoall", 16, samples=(*samples, *wrong))
    assert fit_facts(facts, 0.5).bytes_per_s == pytest.approx(50e9)


def test_it_reads_as_a_sentence() -> None:
    """Rate, start-up, sizes and errors; and the seconds it predicts."""
    found = Fit(20e-6, 50e9, 0.012, 0.02, 6, 2, 8 << 20, 1 << 28)
    assert (
        found.text == "50 GB/s after 20 us, 6 sizes of 8.39 MB to 268 MB, mean error 1.2%, "
        "2.0% for a size that was left out"
    )
    assert found.seconds(50e9) == pytest.approx(1.00002)
