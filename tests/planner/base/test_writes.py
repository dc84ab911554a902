"""What is written is whole or not there."""

import errno
import os
import resource
import stat
from pathlib import Path

import pytest

from planner.base import BadInput, write_atomic
from tests.planner.base.given import saved


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
    """The last step before the rename fails for want of space.

    The old content stays, and no temporary file.
    """

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
