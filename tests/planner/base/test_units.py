"""Human text to SI and back."""

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import (
    BadInput,
    human_bandwidth,
    human_bytes,
    human_seconds,
    parse_bandwidth,
    parse_bytes,
    parse_flops,
)
from planner.base.units import parse_seconds

PARSERS: list[Callable[[object], float]] = [parse_bandwidth, parse_bytes, parse_flops, parse_seconds]


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_bandwidth, "450 GB/s", 450e9),
        (parse_bandwidth, "400 Gb/s", 50e9),  # bits
        (parse_bandwidth, "400Gbit/s", 50e9),
        (parse_bandwidth, "200 Gbps", 25e9),
        (parse_bandwidth, " 3.35 TB/s ", 3.35e12),
        (parse_bandwidth, "1 GiB/s", 2.0**30),
        (parse_bandwidth, "8 b/s", 1.0),
        (parse_bytes, "80 GB", 80e9),
        (parse_bytes, "64 GiB", 64 * 2.0**30),
        (parse_bytes, "2 PiB", 2.0**51),
        (parse_bytes, "10 kB", 10e3),
        (parse_bytes, "1e3 B", 1e3),
        (parse_bytes, "0 B", 0.0),
        (parse_flops, "989 TFLOP/s", 989e12),
        (parse_flops, "1.979 PFLOPS", 1.979e15),
        (parse_seconds, "3 us", 3e-6),
        (parse_seconds, "3 \u00b5s", 3e-6),  # the micro sign
        (parse_seconds, "3 \u03bcs", 3e-6),  # the Greek letter
        (parse_seconds, "1.5 ms", 1.5e-3),
        (parse_seconds, "20ns", 20e-9),
        (parse_seconds, "2 s", 2.0),
    ],
)
def test_text_is_read_as_si(parse: Callable[[object], float], text: str, value: float) -> None:
    """Prefixes of 1000 and of 1024, and bits apart from bytes."""
    assert parse(text) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "fast",
        "450",
        "-1 GB",
        "1,000 GB",
        "GB/s",
        "1 GB/h",
        "5 kiB",
        "1 XB",
        "1e999 B",
        "nan B",
        "inf s",
        "9e999 s",
        "1 2 GB",
        None,
        450,
        ["1 B"],
    ],
)
def test_garbage_is_refused_with_an_example(parse: Callable[[object], float], text: object) -> None:
    """Never a bare number, a sign, a thing that is not text, or a value that is not finite."""
    with pytest.raises(BadInput, match=r"cannot read .*; write it like '"):
        parse(text)


def test_a_value_past_the_largest_float_is_refused() -> None:
    """The number alone is finite, with its prefix it is not."""
    with pytest.raises(BadInput, match="cannot read '1e300 PB'"):
        parse_bytes("1e300 PB")


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_bytes, "1 GB/s"),
        (parse_bandwidth, "1 GB"),
        (parse_bytes, "1 Gb"),
        (parse_flops, "1 TB/s"),
        (parse_seconds, "1 B"),
    ],
)
def test_the_unit_has_to_fit(parse: Callable[[object], float], text: str) -> None:
    """A size is no rate, and a memory of so many bits is a mistake."""
    with pytest.raises(BadInput):
        parse(text)


@pytest.mark.parametrize("parse", PARSERS)
@given(
    st.text(max_size=12) | st.from_regex(r"[0-9.eE+-]{1,8} ?[kKMGTP]?i?(B|b/s|B/s|FLOPS|s)", fullmatch=True)
)
def test_no_text_breaks_a_parser(parse: Callable[[object], float], text: str) -> None:
    """A finite number from zero up, or a refusal."""
    with contextlib.suppress(BadInput):
        assert 0 <= parse(text) < float("inf")


@given(st.floats(1, 1e15))
def test_what_is_shown_reads_back(value: float) -> None:
    """To three digits, as bytes and as bytes a second."""
    assert parse_bytes(human_bytes(value).replace(",", "")) == pytest.approx(value, rel=0.005)
    assert parse_bandwidth(human_bandwidth(value).replace(",", "")) == pytest.approx(value, rel=0.005)


@given(st.floats(1e-9, 1e3))
def test_times_read_back(value: float) -> None:
    """To three digits."""
    assert parse_seconds(human_seconds(value).replace(",", "")) == pytest.approx(value, rel=0.005)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (human_bytes(0), "0 B"),
        (human_bytes(999), "999 B"),
        (human_bytes(999_400), "999 kB"),
        (human_bytes(999_600), "1 MB"),  # not 1e+03 kB
        (human_bytes(2_554_331_136), "2.55 GB"),
        (human_bytes(-5e9), "-5 GB"),
        (human_bytes(5e15), "5,000 TB"),
        (human_bandwidth(50e9), "50 GB/s"),
        (human_seconds(0.9996e-3), "1 ms"),
        (human_seconds(7.7e-5), "77 us"),
        (human_seconds(0), "0 ns"),
        (human_seconds(12_000), "12,000 s"),
    ],
)
def test_figures_are_short(shown: str, text: str) -> None:
    """Three digits, the largest prefix that leaves one before the point, thousands with commas."""
    assert shown == text
