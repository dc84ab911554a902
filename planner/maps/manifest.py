"""The list that an emission leaves in its folder: what it wrote, with a digest of each file."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.base import dump_json, read_json
from planner.schema import Kind, Record, Table, Text

MANIFEST = "moeplan-emission.json"
PAIR_MANIFEST = "moeplan-pair.json"  # of what lies beside the two halves of a pair
MANIFEST_SCHEMA = "moeplan/emission/1"
EMISSION = Kind(
    "the list of an emission",
    MANIFEST_SCHEMA,
    "emit the plan again",
    Record(
        {
            "schema": Text((MANIFEST_SCHEMA,)),
            "files": Table(Text(form="[0-9a-f]{64}", said="a SHA-256"), Text(longest=1000), 0, 10_000),
        }
    ),
)
DEEPEST = 3  # folders in which a file's list is looked for: the vLLM plugin's map lies two below its own


@dataclass(frozen=True)
class Manifest:
    """The list of one folder."""

    folder: Path
    digests: Mapping[str, str]  # by the file's path in the folder

    def name_of(self, path: Path) -> str | None:
        """Under which name a file is listed here; None where it is not."""
        name = path.absolute().relative_to(self.folder.absolute()).as_posix()
        return name if name in self.digests else None

    def present(self, name: str) -> Path | None:
        """The listed file; None where it is gone, or the name leads out of the folder."""
        path = self.folder / name
        inside = self.folder.resolve() in path.resolve().parents
        return path if inside and path.is_file() else None

    def changed(self, name: str) -> bool:
        """Whether a listed file is there with other bytes than those that were emitted."""
        path = self.present(name)
        return path is not None and digest(path.read_bytes()) != self.digests[name]


def manifest_text(texts: Mapping[str, str | bytes]) -> str:
    digests = {
        name: digest(text.encode() if isinstance(text, str) else text) for name, text in sorted(texts.items())
    }
    return dump_json({"schema": MANIFEST_SCHEMA, "files": digests})


def read_manifest(folder: Path, listed: str = MANIFEST) -> Manifest | None:
    """The folder's list; None where it has none. BadInput where it is damaged."""
    path = folder / listed
    if not path.is_file():
        return None
    value = read_json(path)
    EMISSION.check(value, str(path))
    return Manifest(folder, value["files"])


def manifest_of(path: Path) -> Manifest | None:
    """The list in a file's own folder, or the one further up that names the file."""
    own = read_manifest(path.parent)
    above = path.parents if len(path.parents) >= DEEPEST else path.absolute().parents
    lists = (read_manifest(folder) for folder in above[1:DEEPEST]) if own is None else ()
    return own or next((found for found in lists if found and found.name_of(path) is not None), None)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
