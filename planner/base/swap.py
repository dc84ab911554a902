"""A folder that is replaced whole or not at all, whatever ends the program: the new one is made beside it.

What of the old one is to stay is linked into the new one; then both change places in one step of the kernel
(Linux; elsewhere in two). What was made beside is removed by us, or by the next who writes the folder.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from planner.base.errors import BadInput

MOST_KEPT = 10_000  # files of others in the folder
LOCK = "unfinished.json"
OLD = "old"
_AT_CWD, _EXCHANGE = -100, 2  # Linux, fcntl.h and renameat2(2)
_NO_EXCHANGE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)


def write_folder(
    folder: Path, files: Mapping[str, str | bytes], without: frozenset[str] = frozenset(), sign: str = ""
) -> list[Path]:
    """The folder with these files, and what else was in it but `without`; all of that or nothing.

    `sign`: what tells the new folder from the old one, for `unfinished`. BadInput where that cannot be.
    """
    target = folder.resolve() if folder.is_symlink() else folder.absolute()
    _refuse(target, folder)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_deserted(target)
        with _beside(target, sign) as made:
            new = made / "folder"
            new.mkdir()
            _keep(target, new, {*files, *without})
            for name in sorted(files):
                _write(new / name, files[name], target / name)
            _sync(new)
            _swap(new, target)
            _sync(target.parent)
    except OSError as error:
        why = error.strerror or str(error)
        raise BadInput(f"{folder}: cannot be written as a whole ({why}); nothing was changed") from error
    return [folder / name for name in sorted(files)]


def unfinished(folder: Path) -> list[str]:
    """Signs of those who were ended while they wrote this folder: what each was about to put here."""
    found = []
    for lock in folder.absolute().parent.glob(f".{_escaped(folder.absolute().name)}.moeplan-*/{LOCK}"):
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError), lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # who holds it still writes
            found.append(str(json.loads(file.read())["sign"]))
    return found


def _refuse(target: Path, folder: Path) -> None:
    if target.exists() and not target.is_dir():
        raise BadInput(f"{folder}: is a file; name a folder")
    if os.path.ismount(target):
        raise BadInput(
            f"{folder}: a file system is mounted there: it cannot be replaced as a whole, name a folder in it"
        )
    here = Path.cwd()
    if target.is_dir() and (target == here or target in here.parents):
        raise BadInput(
            f"{folder}: is the folder you are in, and would be replaced as a whole; name one in it"
        )


@contextlib.contextmanager
def _beside(target: Path, sign: str) -> Iterator[Path]:
    """A new folder beside the target, locked while we live; it is gone afterwards."""
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}.moeplan-", dir=target.parent))
    try:
        with (made / LOCK).open("w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(json.dumps({"sign": sign}))
            lock.flush()
            yield made
    finally:
        _clear(made)


def _keep(target: Path, new: Path, replaced: set[str]) -> None:
    """Links to what is in the old folder and is not replaced."""
    kept = 0
    for root, folders, names in os.walk(target):
        here = Path(root).relative_to(target)
        for name in [*names, *(one for one in folders if (Path(root) / one).is_symlink())]:
            if (here / name).as_posix() in replaced:
                continue
            kept += 1
            if kept > MOST_KEPT:
                raise BadInput(
                    f"{target}: holds more than {MOST_KEPT:,} files of others; name another folder"
                )
            (new / here).mkdir(parents=True, exist_ok=True)
            _linked(Path(root) / name, new / here / name)
        if (
            not names
            and not folders
            and here.parts
            and not any(one.startswith(f"{here.as_posix()}/") for one in replaced)
        ):
            (new / here).mkdir(parents=True, exist_ok=True)
    if target.is_dir():
        shutil.copymode(target, new)


def _linked(old: Path, new: Path) -> None:
    """The same file under another name, or a copy where the system links no files of others."""
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError:
        shutil.copy2(old, new, follow_symlinks=False)


def _write(path: Path, content: str | bytes, old: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        out.write(content.encode() if isinstance(content, str) else content)
        out.flush()
        os.fsync(out.fileno())
    if old.is_file():
        shutil.copymode(old, path)


def _swap(new: Path, target: Path) -> None:
    if not target.exists():
        new.rename(target)
        return
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if not libc.renameat2(_AT_CWD, os.fsencode(new), _AT_CWD, os.fsencode(target), _EXCHANGE):
            return
        if ctypes.get_errno() not in _NO_EXCHANGE:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    old = new.with_name(OLD)
    target.rename(old)
    try:
        new.rename(target)
    except OSError:
        old.rename(target)
        raise


def _remove_deserted(target: Path) -> None:
    """What others left beside it who were ended: nobody holds their lock."""
    for made in target.parent.glob(f".{_escaped(target.name)}.moeplan-*"):
        with contextlib.suppress(OSError):
            made.rmdir()  # one who was ended before he locked it
        with contextlib.suppress(OSError), (made / LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (made / OLD).is_dir() and not target.exists():  # ended between the two steps that others take
                (made / OLD).rename(target)
            _clear(made)


def _clear(made: Path) -> None:
    """The lock last: what has none is empty, or is being made."""
    for name in ("folder", OLD):
        shutil.rmtree(made / name, ignore_errors=True)
    with contextlib.suppress(OSError):
        (made / LOCK).unlink(missing_ok=True)
        made.rmdir()


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "[]*?" else letter for letter in name)


def _sync(folder: Path) -> None:
    with contextlib.suppress(OSError):  # some file systems sync no folders
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
