"""`nvidia-smi --query-gpu=... --format=csv`, with its header line or (noheader) by what the values look like.

Units stand in the header or behind the value.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.base import BadInput
from planner.topology import LARGEST_NODE_GPUS
from probes.base.facts import GpuFact, Notes
from probes.importers.smi_fields import FABRIC_STATES, FABRIC_UUID, MIB, OTHER_STATUS
from probes.machine.gpu_names import links_of_gpu
from probes.machine.nvlink_fabric import fabric_key

_FIELD = re.compile(r"[a-z_]{2,40}(?:\.[a-z_]{2,40}){0,3}(?: \[[a-z]{1,8}\])?")
_OF_GPUS = ("name", "gpu_name", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id")
_SHAPES = (  # of values; a name is told apart by the catalogue
    ("uuid", re.compile(r"GPU-[0-9a-f-]{8,40}")),
    ("pci.bus_id", re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")),
    ("fabric.clusteruuid", FABRIC_UUID),
    ("memory.total", re.compile(r"[0-9]{1,9} MiB")),
    ("fabric.state", re.compile("completed|in progress|not started")),
    ("fabric.status", re.compile("success")),
)


@dataclass(frozen=True)
class Rows:
    """Where the rows of a table begin, and its columns: what they are called, in lower case."""

    start: int
    columns: tuple[str, ...]


def table_of(lines: Sequence[str]) -> Rows | None:
    """The first table of a text; None where there is none."""
    for at, line in enumerate(lines):
        if "," not in line:
            continue
        words = _words(line)
        names = [word.lower() for word in words]
        if all(_FIELD.fullmatch(name) for name in names) and (
            set(names) & set(_OF_GPUS) or "fabric." in line
        ):
            return Rows(at + 1, tuple(names))
        shapes = _shapes(words)
        if {"uuid", "pci.bus_id"} & set(shapes) and (at == 0 or "name" in shapes):
            return Rows(at, shapes)
    return None


def gpus_of_csv(lines: Sequence[str], rows: Rows, name: str, notes: Notes) -> tuple[GpuFact, ...]:
    """The GPUs by index. BadInput where a row is cut or an index is no new one."""
    gpus: dict[int, GpuFact] = {}
    for number, line in enumerate(lines[rows.start :], start=rows.start + 1):
        words = _words(line)
        if not any(words) or (len(words) == 1 and number < len(lines) and line[:1] in "\tG=#$+|"):
            break  # another output begins
        if len(words) != len(rows.columns):
            counts = f"{len(words)} values for {len(rows.columns)} columns"
            raise BadInput(f"{name}: line {number}: {counts}; the text may be cut")
        row = dict(zip(rows.columns, words, strict=True))
        index = row.get("index", str(len(gpus)))
        if not _is_whole(index) or int(index) >= LARGEST_NODE_GPUS or int(index) in gpus:
            wrong = f"index {index[:20]!r} is not a new number below {LARGEST_NODE_GPUS}"
            raise BadInput(f"{name}: line {number}: {wrong}; give each host a file")
        gpus[int(index)] = _gpu(int(index), row, notes)
    if not gpus:
        raise BadInput(f"{name}: line {rows.start}: a header without a row below it; give the whole output")
    return tuple(gpus[index] for index in sorted(gpus))


def _words(line: str) -> list[str]:
    return [word.strip() for word in line.split(",")]  # nvidia-smi quotes nothing


def _shapes(words: Sequence[str]) -> tuple[str, ...]:
    """What the values look like; what looks like nothing known is '?' and its place."""
    found: list[str] = []
    for at, word in enumerate(words):
        shape = next(
            (name for name, pattern in _SHAPES if pattern.fullmatch(word.lower()) or pattern.fullmatch(word)),
            "",
        )
        if not shape and _is_whole(word):
            shape = "fabric.cliqueid" if "fabric.clusteruuid" in found or at > 1 else "index"
        if not shape and (links_of_gpu(word) or word.startswith(("NVIDIA ", "Tesla "))):
            shape = "name"
        found.append(shape if shape and shape not in found else f"? {at}")
    return tuple(found)


def _gpu(index: int, row: Mapping[str, str], notes: Notes) -> GpuFact:
    fabric, why = _fabric(row)
    if why:
        notes.unknown.append(f"GPU {row.get('index', str(index))}: {why}")
    return GpuFact(
        index,
        row.get("name", row.get("gpu_name")),
        row.get("uuid", row.get("gpu_uuid")),
        _pci(row.get("pci.bus_id", row.get("gpu_bus_id"))),
        memory_bytes=_memory(row),
        fabric=fabric,
    )


def _fabric(row: Mapping[str, str]) -> tuple[str | None, str | None]:
    uuid, clique = row.get("fabric.clusteruuid", ""), row.get("fabric.cliqueid", "")
    state = FABRIC_STATES.get(row.get("fabric.state", "completed").lower(), 0)
    status = 0 if row.get("fabric.status", "success").lower() == "success" else OTHER_STATUS
    if not FABRIC_UUID.fullmatch(uuid):
        return fabric_key(b"", 0, state, status) if state in {1, 2} else (None, None)
    if not _is_whole(clique):
        alone = f"the NVLink fabric {uuid} is given without its clique"
        return None, f"{alone}; which hosts share it is not known"
    return fabric_key(bytes.fromhex(uuid.replace("-", "")), int(clique), state, status)


def _pci(text: str | None) -> str | None:
    """'00000000:1B:00.0' as sysfs writes it: '0000:1b:00.0'."""
    match = re.fullmatch(r"([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", (text or "").lower())
    return f"{match[1][-4:]}:{match[2]}" if match else None


def _memory(row: Mapping[str, str]) -> int | None:
    text = next((value for key, value in row.items() if key.startswith("memory.total")), "")
    match = re.fullmatch(r"([0-9]{1,9})(?: MiB)?", text)
    return int(match[1]) * MIB if match else None


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit()
