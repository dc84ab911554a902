"""Files in and out: what is damaged is refused in one line, and what is written is whole or not there."""

import contextlib
import errno
import io
import json
import os
import re
import resource
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import (
    BadInput,
    check_keys,
    dump_json,
    parse_yaml,
    read_bytes,
    read_csv,
    read_json,
    read_npz,
    read_text,
    read_yaml,
    write_atomic,
    write_json,
)

READERS: list[Callable[[Path], Any]] = [read_text, read_json, read_yaml, read_npz, read_csv]


def saved(folder: Path, content: bytes | str, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refused(reader: Callable[[Path], Any], path: Path) -> str:
    """The refusal: one line that begins with the path."""
    with pytest.raises(BadInput) as caught:
        reader(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text


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


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": [1, 2', "line 1, column 12: not valid JSON .*; the file may be cut short"),
        ('{"a": 1}\n{"b": 2}', "line 2, column 1: not valid JSON"),
        ("hello", "line 1, column 1"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("1" * 5000, "not valid JSON .*digits"),
    ],
)
def test_damaged_json_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    """Cut short, two values, no JSON, a nest, an absurd number."""
    assert re.search(reason, refused(read_json, saved(tmp_path, text)))


BOMB = "a: &a [x, x]\n" + "".join(
    f"{after}: &{after} [*{before}, *{before}]\n"
    for before, after in zip("abcdefghijkl", "bcdefghijklm", strict=True)
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [1, 2", r"line \d, column \d: not valid YAML"),
        ("a: 1\n b: 2", r"line 2, column \d: not valid YAML"),
        (BOMB, "line 2: YAML aliases are not accepted"),
        ("[" * 100_000, "nested too deeply|exceeded maximum nesting depth"),
        ("".join(" " * level + "-\n" for level in range(2000)), "nested too deeply"),
        ("a: !!python/object/apply:os.system ['touch harm']", "not valid YAML"),
        ("a: !!int forty", "not readable YAML"),
        ("a: !!timestamp 2026-99-99", "not readable YAML"),
        ("a: \x01", "not valid YAML"),
        ("? [1]\n: 2", "not valid YAML"),
    ],
)
@pytest.mark.parametrize("compiled", [True, False])
def test_damaged_yaml_is_refused(
    text: str, reason: str, compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut short, badly indented, aliases that unfold, a nest, code, and tags that do not fit; nothing is run. With PyYAML's C loader and without."""
    monkeypatch.chdir(tmp_path)
    if not compiled:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert re.search(reason, refused(read_yaml, saved(tmp_path, text)))
    assert not Path("harm").exists()


def test_plain_yaml_is_read() -> None:
    """An anchor without an alias is harmless, and nothing at all is None."""
    assert parse_yaml("a: &name 1\nb: [x, 2.5, true]", "text") == {"a": 1, "b": ["x", 2.5, True]}
    assert parse_yaml("# nothing", "text") is None


def npz(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def test_arrays_are_read(tmp_path: Path) -> None:
    """Of an archive by their names, a lone one as 'array'."""
    assert read_npz(saved(tmp_path, npz(a=[1, 2], b=np.eye(2))))["a"].tolist() == [1, 2]
    np.save(tmp_path / "one.npy", np.arange(3))
    assert read_npz(tmp_path / "one.npy")["array"].tolist() == [0, 1, 2]


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
    assert "not a readable NumPy file" in refused(read_npz, saved(tmp_path, lie))


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


def test_rows_of_a_table(tmp_path: Path) -> None:
    """Spaces are stripped; a row of another length and a table without rows are refused."""
    assert read_csv(saved(tmp_path, "layer, expert\n3, 0\n4,1\n")) == [
        {"layer": "3", "expert": "0"},
        {"layer": "4", "expert": "1"},
    ]
    assert "line 3: has another number of cells" in refused(read_csv, saved(tmp_path, "a,b\n1,2\n1\n"))
    assert "line 2: has another number of cells" in refused(read_csv, saved(tmp_path, "a,b\n1,2,3\n"))
    assert "no rows below the header" in refused(read_csv, saved(tmp_path, "a,b\n"))


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """The new content, ordinary permissions, and no other file beside it."""
    path = saved(tmp_path, "old")
    assert write_atomic(path, "new \u00e9\n") == path
    assert path.read_text(encoding="utf-8") == "new \u00e9\n"
    current = os.umask(0)
    os.umask(current)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~current
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last step before the rename fails for want of space: the old content stays, and no temporary file."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = saved(tmp_path, "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        BadInput, match=r"file: cannot be written \(No space left on device\); nothing was changed"
    ):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_cut_short_by_the_system_changes_nothing(tmp_path: Path) -> None:
    """A true refusal by the kernel, in the middle of the text: a limit on the size of files."""
    path = saved(tmp_path, "old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(BadInput, match=r"File too large.*nothing was changed"):
            write_atomic(path, "x" * 1_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interruption_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C during the write is passed on, after the temporary file is gone."""

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "file", "new")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """No such folder, a directory, a device (which a rename would replace by a plain file)."""
    for path, reason in (
        (tmp_path / "none" / "file", "No such file or directory"),
        (tmp_path, "a directory; give a file"),
    ):
        with pytest.raises(BadInput, match=reason):
            write_atomic(path, "text")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="not a regular file"):
        write_atomic(tmp_path / "pipe", "text")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=15,
)


@given(JSON_VALUES)
def test_json_comes_back(value: Any) -> None:
    """What is dumped is valid JSON of the same value, ends in one newline, and is the same text every time."""
    text = dump_json(value)
    assert json.loads(text) == value
    assert text == dump_json(json.loads(text))
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_json_is_laid_out_for_a_diff(tmp_path: Path) -> None:
    """One line for each layer's row."""
    path = write_json(
        tmp_path / "plan.json",
        {"schema": "x", "rows": {"3": [0, 1], "4": [1, 0]}, "empty": {}, "nest": [[1], [2]]},
    )
    assert path.read_text() == (
        '{\n  "schema": "x",\n  "rows": {\n    "3": [0, 1],\n    "4": [1, 0]\n  },\n  "empty": {},\n  "nest": [\n    [1],\n    [2]\n  ]\n}\n'
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [1.0, float("-inf")]}])
def test_json_never_holds_what_is_no_json(value: Any, tmp_path: Path) -> None:
    """NaN in an output is a bug of ours: it raises, and nothing is written."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "file", value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([1], "expected a mapping with count, rate; got list"),
        (None, "got NoneType"),
        ({"count": 1}, "the key 'rate' is missing"),
        ({"count": 1.5, "rate": 1.0}, "'count' is 1.5; expected a whole number"),
        ({"count": True, "rate": 1.0}, "'count' is True; expected a whole number"),
        ({"count": 1, "rate": False}, "'rate' is False; expected a whole number or a number"),
        ({"count": 1, "rate": "fast"}, "'rate' is 'fast'"),
        ({"count": 1, "rate": 2, "note": 5}, "'note' is 5; expected text"),
        ({"count": 1, "rate": 2, "nmae": "x"}, "unknown key 'nmae'; known are count, note, rate"),
        ({"count": 1, "rate": 2, 7: "x"}, "unknown key '7'"),
    ],
)
def test_keys_are_checked(value: Any, reason: str) -> None:
    """Missing, of another type, misspelt: the place, the key and the value are named."""
    with pytest.raises(BadInput, match=f"^here: .*{reason}"):
        check_keys(value, "here", {"count": int, "rate": (int, float)}, {"note": str})


def test_good_keys_pass() -> None:
    """The mapping itself comes back, optional keys or not."""
    for value in ({"count": 1, "rate": 2.5}, {"count": 1, "rate": 2, "note": "x"}):
        assert check_keys(value, "here", {"count": int, "rate": (int, float)}, {"note": str}) is value
