"""Files in and out, safely: size-limited reads, no code execution, atomic writes, one line for each fault."""

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

from planner.base.errors import BadInput
from planner.base.json_text import dump_json, parse_json
from planner.base.shown import flattened
from planner.base.yaml_text import parse_yaml

LARGEST_FILE_BYTES = 1 << 30
LARGEST_TEXT_BYTES = 128 << 20
LARGEST_YAML_BYTES = 64 << 20


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


def read_text(path: str | Path, largest: int = LARGEST_TEXT_BYTES) -> str:
    content = read_bytes(path, largest)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_text(path, content) from error


def read_json(path: str | Path, largest: int = LARGEST_TEXT_BYTES) -> Any:
    return parse_json(read_text(path, largest), str(path))


def read_yaml(path: str | Path, largest: int = LARGEST_YAML_BYTES) -> Any:
    return parse_yaml(read_text(path, largest), str(path))


def not_text(path: str | Path, content: bytes) -> BadInput:
    """The fault of bytes that are no UTF-8: which is the first."""
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return BadInput(f"{path}: byte {error.start} is not UTF-8 text; this looks like a binary file")
    return BadInput(f"{path}: this is not UTF-8 text")


def write_json(path: str | Path, value: Any) -> Path:
    """As JSON whose texts are lines without control characters, whatever went into them."""
    return write_atomic(path, dump_json(flattened(value)))


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
            with contextlib.suppress(OSError):  # it has become the file, or nobody can remove it
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
