"""What is no output of nccl-tests, floods, and output with a part cut out: no wrong figure comes of it."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from probes.importers.nccl_tests import read, recognise
from tests.probes.importers.nccl_runs import EXPECTED, NEW, WHOLE, attempt, figures


def test_other_text_is_not_taken_for_it() -> None:
    """A topology listing, another JSON, prose, nothing."""
    for content in (
        b"\tGPU0\tGPU1\nGPU0\t X \tNV18\n",
        b'{"gpus": 8}',
        b"the busbw was fine",
        b"",
        b"\x00\xff" * 50,
    ):
        assert not recognise(content, "x")


@pytest.mark.parametrize(
    "filler",
    [
        b"\x00",
        b"7",
        b"7 ",
        b"float 1 ",
        b"a:1:1 [",
        b"# Rank 1 Pid 1 on ",
        b"busbw algbw\n",
        b"1048576 16384 float none -1 1 1 1 0\n",
    ],
)
def test_floods_end_soon(filler: bytes) -> None:
    """100 MB are refused by size; 4 MB of anything are through within seconds."""
    mark = b"algbw busbw\n"
    with pytest.raises(BadInput, match="too many for a result of nccl-tests"):
        read(mark + filler * (100_000_000 // len(filler)), "big.txt")
    start = time.monotonic()
    attempt(mark + filler * (4_000_000 // len(filler)))
    assert time.monotonic() - start < 10


@settings(max_examples=60)
@given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)), st.binary(max_size=12))
def test_a_part_cut_out_or_overwritten_gives_no_wrong_figure(start: int, length: int, junk: bytes) -> None:
    """Every figure that comes out was in the whole, for the right size; or it is BadInput.

    A number of ranks that differs is explained.
    """
    content = WHOLE.encode()
    damaged = content[:start] + junk + content[min(start + length // 8, len(content)) :]
    true = {(size, in_place): busbw for size, in_place, busbw in EXPECTED}
    for facts in attempt(damaged):
        assert facts.ranks == 4 or facts.warnings or facts.unknown
        for size, in_place, busbw in figures(facts):
            assert busbw == pytest.approx(true[size, in_place], rel=0.03)


@settings(max_examples=100)
@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_junk_is_borne(junk: bytes) -> None:
    """Whatever it is: facts or BadInput."""
    for content in (junk, b"algbw busbw\n" + junk, NEW.encode() + b"\n" + junk):
        recognise(content, "x")
        attempt(content)
