"""Files in: what is damaged is refused in one line."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.base import BadInput, read_bytes, read_csv, read_json, read_npz, read_text, read_yaml
from tests.planner.base.given import refused, saved

READERS: list[Callable[[Path], Any]] = [read_text, read_json, read_yaml, read_npz, read_csv]


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_refused(reader: Callable[[Path], Any], tmp_path: Path) -> None:
    """Missing, a directory, a pipe (which would wait for ever), empty."""
    assert "No such file" in refused(reader, tmp_path / "missing")
    assert "a directory; give a file" in refused(reader, tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refused(reader, tmp_path / "pipe")
    assert "not a regular file" in refused(reader, Path("/dev/zero"))
    assert "the file is empty" in refused(reader, saved(tmp_path, b""))


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    """The size is looked at before the content, so that a terabyte is refused at once."""
    path = tmp_path / "sparse"
    with path.open("wb") as out:
        out.truncate(1 << 40)
    assert "1,099,511,627,776 bytes is more than" in refused(read_bytes, path)
    assert read_bytes(saved(tmp_path, b"12345"), largest=5) == b"12345"
    with pytest.raises(BadInput, match="6 bytes is more than the 5 we read"):
        read_bytes(saved(tmp_path, b"123456"), largest=5)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    """The system's own words."""
    path = saved(tmp_path, "{}")
    path.chmod(0)
    assert "Permission denied" in refused(read_bytes, path)


def test_binary_is_not_text(tmp_path: Path) -> None:
    """The first byte that is no UTF-8 is named; a byte order mark is skipped."""
    for reader in (read_text, read_json, read_yaml, read_csv):
        assert "byte 2 is not UTF-8 text" in refused(reader, saved(tmp_path, b"ab\xff\x00"))
    assert read_json(saved(tmp_path, b"\xef\xbb\xbf[1]")) == [1]


def test_rows_of_a_table(tmp_path: Path) -> None:
    """Spaces are stripped; a row of another length and a table without rows are refused."""
    assert read_csv(saved(tmp_path, "layer, expert\n3, 0\n4,1\n")) == [
        {"layer": "3", "expert": "0"},
        {"layer": "4", "expert": "1"},
    ]
    assert "line 3: has 1 cells, the header 2" in refused(read_csv, saved(tmp_path, "a,b\n1,2\n1\n"))
    assert "line 2: has 3 cells, the header 2" in refused(read_csv, saved(tmp_path, "a,b\n1,2,3\n"))
    assert "no rows below the header" in refused(read_csv, saved(tmp_path, "a,b\n"))
