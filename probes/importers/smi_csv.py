"""`nvidia-smi --query-gpu=...

--format=csv` with a header line; units stand in the header or behind the value.
"""

import re
from collections.abc import Mapping

from planner.base import BadInput
from planner.topology import LARGEST_NODE_GPUS
from probes.base.facts import GpuFact, Notes
from probes.importers.smi_fields import FABRIC_STATES, FABRIC_UUID, MIB, OTHER_STATUS
from probes.machine.nvlink_fabric import fabric_key


def gpus_of_csv(lines: list[str], start: int, name: str, notes: Notes) -> tuple[GpuFact, ...]:
    """The GPUs by index; lines[start] is the header.

    BadInput where a row is cut or an index is no new one.
    """
    columns = [word.strip().lower() for word in lines[start].split(",")]
    gpus: dict[int, GpuFact] = {}
    for number, line in enumerate(lines[start + 1 :], start=start + 2):
        words = [word.strip() for word in line.split(",")]  # nvidia-smi quotes nothing
        if not any(words):
            break
        if len(words) != len(columns):
            counts = f"{len(words)} values for {len(columns)} columns"
            raise BadInput(f"{name}: line {number}: {counts}; the text may be cut")
        row = dict(zip(columns, words, strict=True))
        index = row.get("index", str(len(gpus)))
        if not _is_whole(index) or int(index) >= LARGEST_NODE_GPUS or int(index) in gpus:
            wrong = f"index {index[:20]!r} is not a new number below {LARGEST_NODE_GPUS}"
            raise BadInput(f"{name}: line {number}: {wrong}; give each host a file")
        gpus[int(index)] = _gpu(int(index), row, notes)
    if not gpus:
        raise BadInput(f"{name}: line {start + 1}: a header without a row below it; give the whole output")
    return tuple(gpus[index] for index in sorted(gpus))


def _gpu(index: int, row: Mapping[str, str], notes: Notes) -> GpuFact:
    fabric, why = _fabric(row)
    if why:
        notes.unknown.append(f"GPU {row.get('index', str(index))}: {why}")
    return GpuFact(
        index,
        row.get("name"),
        row.get("uuid", row.get("gpu_uuid")),
        _pci(row.get("pci.bus_id")),
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
