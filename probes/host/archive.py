"""A .tar or .tar.gz of sysfs files as a tree in memory, also where it is cut short."""

import io
import posixpath
import tarfile
import zlib
from dataclasses import dataclass, field

from planner.base import BadInput
from probes.host.sysfs_tree import LARGEST_FILE_BYTES, LONGEST_NAME, Archive

LARGEST_ARCHIVE_BYTES = 64 << 20  # unfolded
LARGEST_MEMBERS = 100_000
_DAMAGED_TAR = (tarfile.TarError, ValueError, EOFError, OverflowError, OSError, LookupError, TypeError)
_GZIP = b"\x1f\x8b"


def read_archive(packed: bytes, name: str) -> Archive:
    """The archive. BadInput where it is none, unfolds too far or holds too much.

    One that is cut short keeps what came before.
    """
    unfolded, cut = _unfold(packed, name)
    found = _Found()
    try:
        with tarfile.open(fileobj=io.BytesIO(unfolded), mode="r:") as tar:
            for number, member in enumerate(tar):
                if number >= LARGEST_MEMBERS:
                    most = f"more than {LARGEST_MEMBERS:,} files in it"
                    raise BadInput(
                        f"{name}: {most}; archive sys/class/infiniband and the PCI devices it needs"
                    )
                found.take(tar, member)
    except _DAMAGED_TAR as error:
        if not found.files and not found.links:
            raise BadInput(f"{name}: not a readable tar archive ({error})") from error
        cut = True
    cut = cut or unfolded[-1024:] != bytes(1024)  # a whole tar ends in two empty blocks
    folders = {folder: tuple(sorted(inside)) for folder, inside in found.folders.items()}
    return Archive(found.files, found.links, folders, cut)


@dataclass
class _Found:
    """The tree while its members are read."""

    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    folders: dict[str, set[str]] = field(default_factory=lambda: {"": set()})

    def take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """A member with a bearable path inside the tree; others are passed over."""
        path = posixpath.normpath(member.name).lstrip("/")
        if len(path) > LONGEST_NAME or path.split("/")[0] in ("..", "."):
            return
        _enter(self.folders, path, is_folder=member.isdir())
        if member.issym():
            self.links[path] = member.linkname
        elif member.islnk():  # the same file under a second name
            self.links[path] = "/" + posixpath.normpath(member.linkname).lstrip("/")
        elif member.isreg():
            opened = tar.extractfile(member)
            self.files[path] = opened.read(LARGEST_FILE_BYTES) if opened else b""


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
    if packed.startswith(_GZIP):
        return _unzip(packed, name)
    if len(packed) > LARGEST_ARCHIVE_BYTES:
        most = f"the {LARGEST_ARCHIVE_BYTES:,} we read"
        raise BadInput(f"{name}: an archive of {len(packed):,} bytes is more than {most}")
    return packed, False


def _unzip(packed: bytes, name: str) -> tuple[bytes, bool]:
    parts: list[bytes] = []
    left, size = packed, 0
    while left.startswith(_GZIP):  # gzip streams may follow one another
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
