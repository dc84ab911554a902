"""A folder that a server writes files to: which are new, and which cannot be read."""

from collections.abc import Iterator
from pathlib import Path

from planner.base import BadInput
from planner.load import Known


class Folder:
    """New files, oldest first by name. A file that could not be read is told again when it changes."""

    def __init__(self, path: Path, patterns: tuple[str, ...]) -> None:
        self.path, self._patterns = path, patterns
        self._bad: set[str] = set()

    def new(self, known: Known) -> tuple[list[tuple[str, Path]], tuple[str, ...]]:
        """((key, file) of each that is new, keys of all that are there). BadInput without a folder."""
        if not self.path.exists():
            raise BadInput(
                f"{self.path}: no folder or file is there (yet); the server makes it, or name another"
            )
        found = {key: path for path in self._files() if (key := _key(path))}
        self._bad &= set(found)
        fresh = [(key, path) for key, path in found.items() if key not in self._bad and not known.has(key)]
        return fresh, tuple(found)

    def spoilt(self, key: str, fault: BadInput) -> str:
        """The line for a file that cannot be read: it is not looked at again before it changes."""
        self._bad.add(key)
        return f"{fault}; left out"

    def _files(self) -> Iterator[Path]:
        if not self.path.is_dir():
            return iter((self.path,))
        names = {path for pattern in self._patterns for path in self.path.glob(pattern)}
        return iter(sorted(path for path in names if not path.name.startswith(".")))


def _key(path: Path) -> str:
    """Name, size and time of the last change; empty where the file went away meanwhile."""
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{path.name}:{found.st_size}:{found.st_mtime_ns}"
