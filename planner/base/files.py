"""Files in and out, safely: size-limited reads, no code execution, atomic writes, one line for each fault."""

import contextlib
import csv
import io
import json
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from planner.base.errors import BadInput

LARGEST_FILE_BYTES = 1 << 30
DEEPEST_YAML = (
    100  # our files nest some ten levels; PyYAML without its C half takes minutes over a hundred thousand
)


def read_bytes(path: str | Path, largest: int = LARGEST_FILE_BYTES) -> bytes:
    """The file's bytes. BadInput where it is missing, a directory, unreadable, empty or larger than `largest`."""
    path = Path(path)
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise BadInput(f"{path}: {_not_a_file(path)}")
        if size > largest:
            raise BadInput(
                f"{path}: {size:,} bytes is more than the {largest:,} we read; record fewer windows or summarise the file"
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
        raise BadInput(
            f"{path}: byte {error.start} is not UTF-8 text; this looks like a binary file"
        ) from error


def read_json(path: str | Path, largest: int = LARGEST_FILE_BYTES) -> Any:
    return parse_json(read_text(path, largest), str(path))


def parse_json(text: str, name: str) -> Any:
    """JSON whose mappings hold each key once. `name` is used in messages."""
    try:
        return json.loads(text, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise BadInput(
            f"{name}: line {error.lineno}, column {error.colno}: not valid JSON ({error.msg}); the file may be cut short"
        ) from error
    except ValueError as error:  # a number of thousands of digits, or a key that appears twice
        raise BadInput(f"{name}: not valid JSON ({error})") from error
    except RecursionError as error:
        raise BadInput(f"{name}: the JSON is nested too deeply to be one of our files") from error


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping whose second value for a key would win in silence is refused."""
    value = dict(pairs)
    if len(value) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice[:40]!r} appears twice in one mapping")
    return value


def parse_yaml(text: str, name: str) -> Any:
    """YAML without objects, tags or aliases: plain data only. `name` is used in messages."""
    import yaml  # heavy: imported where it is used

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class UniqueKeys(loader):  # type: ignore[misc, valid-type]  # the base is chosen at run time
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
            mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
            if len(mapping) != len(node.value):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key appears twice in one mapping", node.start_mark
                )
            return mapping

    depth = 0
    try:
        for event in yaml.parse(
            text, Loader=loader
        ):  # before anything is built: a few nested aliases unfold to gigabytes
            if isinstance(event, yaml.events.AliasEvent):
                line = event.start_mark.line + 1 if event.start_mark else "unknown"
                raise BadInput(f"{name}: line {line}: YAML aliases are not accepted; write the value out")
            depth += isinstance(event, yaml.events.CollectionStartEvent) - isinstance(
                event, yaml.events.CollectionEndEvent
            )
            if depth > DEEPEST_YAML:
                raise BadInput(f"{name}: not readable YAML (nested too deeply to be one of our files)")
        return yaml.load(text, Loader=UniqueKeys)  # noqa: S506 - a SafeLoader that accepts less
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise BadInput(
            f"{name}: {where}not valid YAML ({getattr(error, 'problem', None) or 'unreadable'})"
        ) from error
    except (
        RecursionError,
        ValueError,
        AttributeError,
        LookupError,
        OverflowError,
    ) as error:  # what PyYAML raises at a bad '!!int' or '!!timestamp'
        raise BadInput(f"{name}: not readable YAML ({error})") from error


def read_yaml(path: str | Path, largest: int = 64 << 20) -> Any:
    return parse_yaml(read_text(path, largest), str(path))


def read_csv(path: str | Path) -> list[dict[str, str]]:
    """Rows keyed by the header. Every row must be as long as the header."""
    reader = csv.DictReader(io.StringIO(read_text(path)))
    rows = []
    try:
        for row in reader:
            if None in row or None in row.values():
                raise BadInput(
                    f"{path}: line {reader.line_num}: has another number of cells than the header {reader.fieldnames}"
                )
            rows.append({key.strip(): value.strip() for key, value in row.items()})
    except csv.Error as error:
        raise BadInput(f"{path}: line {reader.line_num}: not valid CSV ({error})") from error
    if not rows:
        raise BadInput(f"{path}: no rows below the header")
    return rows


def write_atomic(path: str | Path, content: str | bytes) -> Path:
    """Write the whole file or nothing: a temporary file beside it, then a rename. BadInput where the disk is full or not writable."""
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
        os.chmod(
            temporary, 0o666 & ~_umask()
        )  # a temporary file is private; the file it becomes is an ordinary one
        os.replace(temporary, path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({_reason(error)}); nothing was changed") from error
    finally:
        if temporary is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
    return path


def write_json(path: str | Path, value: Any) -> Path:
    return write_atomic(path, dump_json(value))


def dump_json(value: Any) -> str:
    """JSON with one line per entry of the outer levels and innermost lists of numbers on one line, so that a diff of two plans can be read."""
    return _dump(value, indent=0) + "\n"


def _dump(value: Any, indent: int) -> str:
    pad, inner = "  " * indent, "  " * (indent + 1)
    if isinstance(value, dict) and value:
        entries: list[str] = [
            f"{inner}{json.dumps(str(key))}: {_dump(entry, indent + 1)}" for key, entry in value.items()
        ]
        return "{\n" + ",\n".join(entries) + f"\n{pad}}}"
    if isinstance(value, (list, tuple)) and any(isinstance(entry, (dict, list, tuple)) for entry in value):
        return "[\n" + ",\n".join(inner + _dump(entry, indent + 1) for entry in value) + f"\n{pad}]"
    return json.dumps(value, allow_nan=False)


def check_keys(
    value: Any,
    where: str,
    required: dict[str, type | tuple[type, ...]],
    optional: dict[str, type | tuple[type, ...]] | None = None,
) -> dict[str, Any]:
    """`value` as a mapping with these keys of these types, and no others (a misspelt key must not pass in silence)."""
    optional = optional or {}
    if not isinstance(value, dict):
        raise BadInput(f"{where}: expected a mapping with {', '.join(required)}; got {type(value).__name__}")
    for key, kinds in {**required, **optional}.items():
        if key not in value:
            if key in required:
                raise BadInput(f"{where}: the key '{key}' is missing")
        elif not isinstance(value[key], kinds) or (
            isinstance(value[key], bool) and kinds in (int, float, (int, float))
        ):
            raise BadInput(f"{where}: '{key}' is {value[key]!r}; expected {_type_names(kinds)}")
    unknown = set(value) - set(required) - set(optional)
    if unknown:
        raise BadInput(
            f"{where}: unknown key '{min(map(str, unknown))}'; known are {', '.join(sorted({**required, **optional}))}"
        )
    return value


def _type_names(kinds: type | tuple[type, ...]) -> str:
    words: dict[type, str] = {
        dict: "a mapping",
        list: "a list",
        str: "text",
        int: "a whole number",
        float: "a number",
        bool: "true or false",
    }
    return " or ".join(
        words.get(kind, kind.__name__) for kind in (kinds if isinstance(kinds, tuple) else (kinds,))
    )


def _not_a_file(path: Path) -> str:
    return f"this is {'a directory' if path.is_dir() else 'not a regular file'}; give a file"


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
