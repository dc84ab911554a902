"""Files in and out, safely: size-limited reads, no code execution, atomic writes, one line for each fault."""

import contextlib
import csv
import io
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from planner.base.errors import BadInput
from planner.base.json_text import dump_json, parse_json

LARGEST_FILE_BYTES = 1 << 30
DEEPEST_YAML = 100  # our files nest some ten levels; PyYAML without C takes minutes over a hundred thousand
LONGEST_YAML_NUMBER = 1000
# Beside its own YAMLError, what PyYAML raises at a bad '!!int' or '!!timestamp'.
UNREADABLE_YAML = (RecursionError, ValueError, AttributeError, LookupError, OverflowError)


def read_bytes(path: str | Path, largest: int = LARGEST_FILE_BYTES) -> bytes:
    """The file's bytes.

    BadInput where it is missing, a directory, unreadable, empty or larger than `largest`.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise BadInput(f"{path}: {_not_a_file(path)}")
        if size > largest:
            raise BadInput(
                f"{path}: {size:,} bytes is more than the {largest:,} we read; "
                "record fewer windows or summarise the file"
            )
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({_reason(error)})") from error
    if not content:
        raise BadInput(f"{path}: the file is empty")
    return content


def read_text(path: str | Path, largest: int = LARGEST_FILE_BYTES) -> str:
    content = read_bytes(path, largest)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{path}: byte {error.start} is not UTF-8 text; this looks like a binary file"
        raise BadInput(message) from error


def read_json(path: str | Path, largest: int = LARGEST_FILE_BYTES) -> Any:
    return parse_json(read_text(path, largest), str(path))


def read_yaml(path: str | Path, largest: int = 64 << 20) -> Any:
    return parse_yaml(read_text(path, largest), str(path))


def parse_yaml(text: str, name: str) -> Any:
    """YAML without objects, tags or aliases: plain data only. `name` is used in messages."""
    import yaml  # heavy: imported where it is used

    try:
        _refuse_what_unfolds(text, name)
        return yaml.load(text, Loader=_unique_keys_loader())  # noqa: S506 - a SafeLoader that accepts less
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or "unreadable"
        raise BadInput(f"{name}: {where}not valid YAML ({problem})") from error
    except UNREADABLE_YAML as error:
        raise BadInput(f"{name}: not readable YAML ({error})") from error


def _refuse_what_unfolds(text: str, name: str) -> None:
    """Before anything is built: a few nested aliases unfold to gigabytes."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=_safe_loader()):
        if isinstance(event, yaml.events.AliasEvent):
            line = event.start_mark.line + 1 if event.start_mark else "unknown"
            raise BadInput(f"{name}: line {line}: YAML aliases are not accepted; write the value out")
        depth += isinstance(event, yaml.events.CollectionStartEvent)
        depth -= isinstance(event, yaml.events.CollectionEndEvent)
        if depth > DEEPEST_YAML:
            raise BadInput(f"{name}: not readable YAML (nested too deeply to be one of our files)")


def _safe_loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def _unique_keys_loader() -> Any:
    import yaml

    loader = _safe_loader()

    class UniqueKeys(loader):  # type: ignore[misc, valid-type]  # the base is chosen at run time
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - PyYAML's
            mapping = super().construct_mapping(node, deep=deep)
            if len(mapping) != len(node.value):
                twice = "a key appears twice in one mapping"
                raise yaml.constructor.ConstructorError(None, None, twice, node.start_mark)
            return mapping

        def construct_scalar(self, node: Any) -> Any:
            """A hexadecimal number of a million digits is read at once, and cannot be printed."""
            if node.tag == "tag:yaml.org,2002:int" and len(node.value) > LONGEST_YAML_NUMBER:
                long = f"a number of more than {LONGEST_YAML_NUMBER} digits"
                raise yaml.constructor.ConstructorError(None, None, long, node.start_mark)
            return super().construct_scalar(node)

    return UniqueKeys


def read_csv(path: str | Path) -> list[dict[str, str]]:
    """Rows keyed by the header. Every row must be as long as the header."""
    reader = csv.DictReader(io.StringIO(read_text(path)))
    rows = []
    try:
        for row in reader:
            if None in row or None in row.values():
                raise BadInput(
                    f"{path}: line {reader.line_num}: "
                    f"has another number of cells than the header {reader.fieldnames}"
                )
            rows.append({key.strip(): value.strip() for key, value in row.items()})
    except csv.Error as error:
        raise BadInput(f"{path}: line {reader.line_num}: not valid CSV ({error})") from error
    if not rows:
        raise BadInput(f"{path}: no rows below the header")
    return rows


def write_json(path: str | Path, value: Any) -> Path:
    return write_atomic(path, dump_json(value))


def write_atomic(path: str | Path, content: str | bytes) -> Path:
    """Write the whole file or nothing: a temporary file beside it, then a rename.

    BadInput where the disk is full or not writable.
    """
    path = Path(path)
    temporary = None
    try:
        if path.exists() and not path.is_file():  # a rename would put a plain file in the place of /dev/null
            raise BadInput(f"{path}: {_not_a_file(path)}")
        with tempfile.NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}.", delete=False) as out:
            temporary = out.name
            out.write(content.encode() if isinstance(content, str) else content)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(temporary, 0o666 & ~_umask())  # a temporary file is private, the file it becomes is not
        os.replace(temporary, path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({_reason(error)}); nothing was changed") from error
    finally:
        if temporary is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
    return path


def _not_a_file(path: Path) -> str:
    return f"this is {'a directory' if path.is_dir() else 'not a regular file'}; give a file"


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
