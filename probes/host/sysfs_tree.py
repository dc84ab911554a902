"""A tree of small files as sysfs has them: a directory of this machine, or an archive held in memory. Links are followed inside the tree only."""

import io
import os
import posixpath
import stat
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from planner.base import BadInput

LARGEST_FILE_BYTES = 8192  # a sysfs file is one page; PCI configuration space is 4096 bytes
LARGEST_ARCHIVE_BYTES = 64 << 20  # unfolded
LARGEST_MEMBERS = 100_000
_LONGEST_NAME = 1024
_MOST_LINKS = 40  # as the kernel
_DAMAGED_TAR = (tarfile.TarError, ValueError, EOFError, OverflowError, OSError, LookupError, TypeError)


class Tree(Protocol):
    """Paths are relative to the root, with '/' between and no '.', '..' or links in them but for `link`'s last part."""

    def link(self, path: str) -> str | None: ...
    def file(self, path: str) -> bytes | None: ...
    def entries(self, path: str) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Directory:
    """A directory of this machine as a tree, '/' included. What cannot be read is absent: the kernel answers many reads with an error."""

    root: Path

    def link(self, path: str) -> str | None:
        try:
            return os.readlink(self.root / path)  # noqa: PTH115 - a Path would tidy the target up
        except OSError:
            return None

    def file(self, path: str) -> bytes | None:
        try:
            if not stat.S_ISREG((self.root / path).lstat().st_mode):
                return None
            with (self.root / path).open("rb") as opened:
                return opened.read(LARGEST_FILE_BYTES)
        except OSError:
            return None

    def entries(self, path: str) -> tuple[str, ...]:
        try:
            return tuple(sorted(os.listdir(self.root / path)))  # noqa: PTH208 - names are wanted, not paths
        except OSError:
            return ()


@dataclass(frozen=True)
class Archive:
    """A tree in memory."""

    files: Mapping[str, bytes]
    links: Mapping[str, str]
    folders: Mapping[str, tuple[str, ...]]  # every folder, '' the root, and its entries in order
    cut: bool = False  # the archive ended early: entries may be missing

    def link(self, path: str) -> str | None:
        return self.links.get(path)

    def file(self, path: str) -> bytes | None:
        return self.files.get(path)

    def entries(self, path: str) -> tuple[str, ...]:
        return self.folders.get(path, ())


def resolve(tree: Tree, path: str) -> str | None:
    """`path` with every link followed. '..' stops at the root, an absolute target begins there; None where links go in circles. It need not exist."""
    done: list[str] = []
    todo = path.split("/")[::-1]
    links = 0
    while todo:
        part = todo.pop()
        if part in ("", "."):
            continue
        if part == "..":
            done = done[:-1]
            continue
        target = tree.link("/".join([*done, part]))
        if target is None:
            done.append(part)
            continue
        links += 1
        if links > _MOST_LINKS or len(target) > _LONGEST_NAME:
            return None
        if target.startswith("/"):
            done = []
        todo += target.split("/")[::-1]
    return "/".join(done)


def content(tree: Tree, path: str) -> bytes | None:
    real = resolve(tree, path)
    return None if real is None else tree.file(real)


def text(tree: Tree, path: str) -> str | None:
    """The file as one stripped text; None where it is absent, empty or not text. tar pads a sysfs file with zeros: the kernel calls each 4096 bytes long."""
    found = content(tree, path)
    try:
        return found.rstrip(b"\0").decode("utf-8").strip() or None if found is not None else None
    except UnicodeDecodeError:
        return None


def entries(tree: Tree, path: str) -> tuple[str, ...]:
    real = resolve(tree, path)
    return () if real is None else tree.entries(real)


def read_archive(packed: bytes, name: str) -> Archive:
    """A .tar or .tar.gz in memory. BadInput where it is neither, unfolds too far or holds too much; one that is cut short keeps what came before."""
    unfolded, cut = _unfold(packed, name)
    files: dict[str, bytes] = {}
    links: dict[str, str] = {}
    folders: dict[str, set[str]] = {"": set()}
    try:
        with tarfile.open(fileobj=io.BytesIO(unfolded), mode="r:") as tar:
            for number, member in enumerate(tar):
                if number >= LARGEST_MEMBERS:
                    raise BadInput(
                        f"{name}: more than {LARGEST_MEMBERS:,} files in it; archive sys/class/infiniband and the PCI devices it needs"
                    )
                path = posixpath.normpath(member.name).lstrip("/")
                if len(path) > _LONGEST_NAME or path.split("/")[0] in ("..", "."):
                    continue
                _enter(folders, path, is_folder=member.isdir())
                if member.issym():
                    links[path] = member.linkname
                elif member.islnk():  # the same file under a second name
                    links[path] = "/" + posixpath.normpath(member.linkname).lstrip("/")
                elif member.isreg():
                    opened = tar.extractfile(member)
                    files[path] = opened.read(LARGEST_FILE_BYTES) if opened else b""
    except _DAMAGED_TAR as error:
        if not files and not links:
            raise BadInput(f"{name}: not a readable tar archive ({error})") from error
        cut = True
    cut = cut or unfolded[-1024:] != bytes(1024)  # a whole tar ends in two empty blocks
    return Archive(files, links, {folder: tuple(sorted(found)) for folder, found in folders.items()}, cut)


def _enter(folders: dict[str, set[str]], path: str, *, is_folder: bool) -> None:
    if is_folder:
        folders.setdefault(path, set())
    while path:
        parent, _, entry = path.rpartition("/")
        known = parent in folders
        folders.setdefault(parent, set()).add(entry)
        if known and parent:
            return
        path = parent


def _unfold(packed: bytes, name: str) -> tuple[bytes, bool]:
    """The bytes of the tar, and whether a gzip stream ended early."""
    if packed[:2] != b"\x1f\x8b":
        if len(packed) > LARGEST_ARCHIVE_BYTES:
            raise BadInput(
                f"{name}: an archive of {len(packed):,} bytes is more than the {LARGEST_ARCHIVE_BYTES:,} we read"
            )
        return packed, False
    parts: list[bytes] = []
    left, size = packed, 0
    while left[:2] == b"\x1f\x8b":  # gzip streams may follow one another
        stream = zlib.decompressobj(wbits=31)
        try:
            part = stream.decompress(left, LARGEST_ARCHIVE_BYTES + 1 - size)
        except zlib.error as error:
            if not parts:
                raise BadInput(f"{name}: not a readable gzip file ({error})") from error
            return b"".join(parts), True
        parts.append(part)
        size += len(part)
        if size > LARGEST_ARCHIVE_BYTES:
            raise BadInput(f"{name}: unfolds to more than the {LARGEST_ARCHIVE_BYTES:,} bytes we read")
        if not stream.eof:
            return b"".join(parts), True
        left = stream.unused_data
    return b"".join(parts), False
