"""What `import` is given, sorted: a machine that is already described, calibrations, and what tools wrote."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from planner.base import BadInput, parse_json
from planner.topology import Calibration, Topology, is_calibration_text, read_calibration, read_topology
from probes.base.facts import Facts
from probes.importers.registry import LARGEST_BYTES, read_file
from probes.importers.sysfs import read_directory

PRESET = "preset:"
_WITH_COUNTS = re.compile(r"(.+\.(?:ya?ml|json)):[0-9]+(?:[xX][0-9]+)?")
_YAML_KEYS = tuple(re.compile(rb"^" + key + rb"\s*:", re.MULTILINE) for key in (b"nodes", b"fabric"))


@dataclass(frozen=True)
class Sources:
    """`base` is the machine that a preset or topology file describes, `name` how it was asked for."""

    base: Topology | None
    name: str
    calibrations: tuple[tuple[str, Calibration], ...]  # by file
    facts: tuple[Facts, ...]


def read_sources(paths: Sequence[Path]) -> Sources:
    """BadInput where one is of no kind we know, or broken beyond use, or two describe the machine."""
    bases: list[tuple[str, Topology]] = []
    calibrations: list[tuple[str, Calibration]] = []
    facts: list[Facts] = []
    for path in paths:
        text = str(path)
        if text.startswith(PRESET):
            bases.append((text, read_topology(text.removeprefix(PRESET))))
        elif path.is_dir():
            facts += read_directory(path)
        elif _is_topology(path):
            bases.append((text, read_topology(text)))
        elif _is_calibration(path):
            calibrations.append((text, read_calibration(path)))
        else:
            facts += read_file(path)
    if len(bases) > 1:
        both = " and ".join(name for name, _ in bases[:2])
        raise BadInput(f"{both} each describe a machine; give one, and what is to be put on it")
    name, base = bases[0] if bases else ("", None)
    return Sources(base, name, tuple(calibrations), tuple(facts))


def _is_topology(path: Path) -> bool:
    """By its top keys, or because somebody took nodes of it with a colon."""
    counted = _WITH_COUNTS.fullmatch(str(path))
    if counted and not path.exists():
        path = Path(counted[1])
    if path.suffix.lower() not in (".yaml", ".yml", ".json"):
        return False
    content = _content(path)
    if path.suffix.lower() != ".json":
        return all(key.search(content) for key in _YAML_KEYS)
    if b'"fabric"' not in content:
        return False
    try:
        return {"nodes", "fabric"} <= set(parse_json(content.decode(), str(path)))
    except (BadInput, UnicodeDecodeError, TypeError):
        return False  # whatever it is, it is read as what tools write, and said to be broken there


def _is_calibration(path: Path) -> bool:
    return is_calibration_text(_content(path)[:4096])


def _content(path: Path) -> bytes:
    """Empty where the reader will say what is wrong with the file."""
    try:
        known = path.is_file() and path.stat().st_size <= LARGEST_BYTES
        return path.read_bytes() if known else b""
    except OSError:
        return b""
