"""A tree of small files as sysfs has them, links followed inside it alone: on disk or in memory."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

LARGEST_FILE_BYTES = 8192  # a sysfs file is one page; PCI configuration space is 4096 bytes
LONGEST_NAME = 1024
_MOST_LINKS = 40  # as the kernel


class Tree(Protocol):
    """Paths are relative to the root, with '/' between.

    No '.', '..' or links are in them but for `link`'s last part.
    """

    def link(self, path: str) -> str | None: ...
    def file(self, path: str) -> bytes | None: ...
    def entries(self, path: str) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Directory:
    """A directory of this machine as a tree, '/' included.

    What cannot be read is absent: the kernel answers many reads with an error.
    """

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
    """`path` with every link followed. It need not exist.

    '..' stops at the root, an absolute target begins there; None where links go in circles.
    """
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
        if links > _MOST_LINKS or len(target) > LONGEST_NAME:
            return None
        if target.startswith("/"):
            done = []
        todo += target.split("/")[::-1]
    return "/".join(done)


def content(tree: Tree, path: str) -> bytes | None:
    real = resolve(tree, path)
    return None if real is None else tree.file(real)


def text(tree: Tree, path: str) -> str | None:
    """The file as one stripped text; None where it is absent, empty or not text.

    tar pads a sysfs file with zeros: the kernel calls each 4096 bytes long.
    """
    found = content(tree, path)
    try:
        return found.rstrip(b"\0").decode("utf-8").strip() or None if found is not None else None
    except UnicodeDecodeError:
        return None


def entries(tree: Tree, path: str) -> tuple[str, ...]:
    real = resolve(tree, path)
    return () if real is None else tree.entries(real)
