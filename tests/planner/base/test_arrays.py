"""Arrays are read, and damaged ones refused in one line."""

import contextlib
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import BadInput, read_npz
from tests.planner.base.given import refused, saved


def npz(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def test_arrays_are_read(tmp_path: Path) -> None:
    """Of an archive by their names, a lone one as 'array'."""
    assert read_npz(saved(tmp_path, npz(a=[1, 2], b=np.eye(2))))["a"].tolist() == [1, 2]
    np.save(tmp_path / "one.npy", np.arange(3))
    assert read_npz(tmp_path / "one.npy")["array"].tolist() == [0, 1, 2]


def test_a_header_of_python_2_is_read_without_a_word(tmp_path: Path) -> None:
    """NumPy warns of it on the terminal; the numbers are the same."""
    np.save(tmp_path / "one.npy", np.arange(3))
    old = (tmp_path / "one.npy").read_bytes().replace(b"(3,), }  ", b"(3L,), } ", 1)
    assert read_npz(saved(tmp_path, old))["array"].tolist() == [0, 1, 2]


def test_damaged_arrays_are_refused(tmp_path: Path) -> None:
    """A pickle is not loaded, a bomb not unfolded; text, a torn archive and a header that lies are named."""
    np.save(tmp_path / "pickle.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert "pickled arrays are not loaded" in refused(read_npz, tmp_path / "pickle.npy")
    assert "pickled arrays are not loaded" in refused(read_npz, saved(tmp_path, npz(a=np.array([None]))))
    assert "unfolds to" in refused(
        lambda path: read_npz(path, largest=100_000),
        saved(tmp_path, npz(a=np.zeros(1_000_000, dtype=np.int8))),
    )
    assert "not a readable NumPy file" in refused(read_npz, saved(tmp_path, "layer,expert\n1,2"))
    assert "not a readable NumPy file" in refused(read_npz, saved(tmp_path, npz(a=np.arange(1000))[:-30]))
    np.save(tmp_path / "lie.npy", np.arange(3))
    lie = (tmp_path / "lie.npy").read_bytes().replace(b"(3,), ", b"(9" + b"9" * 3 + b",)", 1)
    assert "25 bytes follow a header that promises 79,992: the file is cut short" in refused(
        read_npz, saved(tmp_path, lie)
    )


@given(position=st.integers(0, 600), value=st.integers(0, 255))
@settings(max_examples=100)
def test_a_flipped_byte_is_read_or_refused(
    position: int, value: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No other exception comes out of a damaged archive."""
    content = bytearray(npz(a=np.arange(50), b=np.ones((2, 2))))
    content[position % len(content)] = value
    path = saved(tmp_path_factory.getbasetemp(), bytes(content), "flipped.npz")
    with contextlib.suppress(BadInput):
        assert all(isinstance(array, np.ndarray) for array in read_npz(path).values())


def test_an_archive_inside_holds_arrays_only(tmp_path: Path) -> None:
    """Other members of a ZIP are left out."""
    out = io.BytesIO(npz(a=[1]))
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("notes.txt", "hello")
    assert list(read_npz(saved(tmp_path, out.getvalue()))) == ["a"]
