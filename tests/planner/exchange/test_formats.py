"""Matrix files are read by small readers, written after what the benchmarks' own sources do with them."""

import re

import numpy as np
import numpy.typing as npt
import pytest

from planner.base import BadInput
from planner.exchange.formats import most_bytes, pattern_text, rows_text, whole_GG

Ints = npt.NDArray[np.int64]
LONGEST_LINE = 8191  # of UCC's INI reader, whose buffer has 8192 characters


def read_by_nccl_tests(text: str) -> Ints:
    """src/alltoallv.cu of 2.19.6: white space apart, a row a line, square, down to 16 bytes."""
    rows = [[float(word) for word in line.split()] for line in text.split("\n") if line.split()]
    assert {len(row) for row in rows} == {len(rows)}
    return np.array(rows).astype(np.int64) & ~15


def read_by_older_builds(text: str) -> Ints:
    """Builds that ask for ALLTOALLV_MATRIX_FILE split a line at each space, and drop what is empty."""
    return np.array(
        [[int(float(cell)) for cell in line.split(" ") if cell] for line in text.split("\n") if line]
    )


def read_by_ucc(text: str, ranks: int) -> Ints:
    """utils/ini.c and ucc_pt_generator_file.cc: a line that begins with white space goes on with the key."""
    counts: list[int] = []
    key, section, whole = "", "", False
    for line in text.split("\n"):
        assert len(line) <= LONGEST_LINE
        value = line.strip()
        if not value:
            continue
        if not (key and line[0].isspace()):
            if value[0] == "[":
                section, key = value.strip("[]"), ""
                continue
            key, _, value = (part.strip() for part in value.partition("="))
        assert section in ("format", "collective")
        if key == "type":
            assert value == "ALLTOALLV"
        if key == "counts":
            whole |= "}" in value
            counts += [int(word) for word in re.split(r"[,{}\s]+", value) if word]
    assert whole
    return np.array(counts).reshape(ranks, ranks) * 4


@pytest.mark.parametrize("ranks", [2, 5, 300])
def test_every_reader_sees_the_same_bytes(ranks: int) -> None:
    """Rank order kept; no line is too long for UCC's reader."""
    sent_GG = whole_GG(np.random.default_rng(ranks).lognormal(10, 2, (ranks, ranks)))
    assert (read_by_nccl_tests(rows_text(sent_GG)) == sent_GG).all()
    assert (read_by_older_builds(rows_text(sent_GG)) == sent_GG).all()
    assert (read_by_ucc(pattern_text(sent_GG), ranks) == sent_GG).all()


def test_no_cell_is_more_than_eight_bytes_off() -> None:
    bytes_GG = np.random.default_rng(0).uniform(0, 1e6, (64, 64))
    sent_GG = whole_GG(bytes_GG)
    assert not (sent_GG % 16).any()
    assert np.abs(sent_GG - bytes_GG).max() <= 8


def test_the_busiest_rank_sends_or_receives() -> None:
    assert most_bytes(np.array([[0, 160], [320, 16]])) == 336
    assert most_bytes(np.array([[0, 160], [0, 320]])) == 480


def test_what_ucc_cannot_count_is_refused() -> None:
    """Its counts and offsets are 32-bit: 16 GiB of 4-byte elements a rank."""
    with pytest.raises(BadInput, match="UCC counts elements in 32 bits: plan fewer tokens a rank"):
        pattern_text(np.array([[0, 1 << 34], [0, 0]]))
    pattern_text(np.array([[0, (1 << 34) - 16], [0, 0]]))
