"""A probe of one host as JSON (schema 'moeplan/probe/1'), written whole or not at all, read strictly."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.base import BadInput, read_json, write_json
from probes.base.facts import HostFacts, noted
from probes.ranks.launch import Launch
from probes.record.check import check_host
from probes.record.facts_json import from_plain, to_plain
from probes.record.record_shape import PROBE, SCHEMA, TAKEN

LARGEST_RECORD_BYTES = 16 << 20


@dataclass(frozen=True)
class ProbeRecord:
    """One host at one time: `taken` is UTC like '2026-01-15T09:30:00Z'."""

    host: HostFacts
    taken: str
    launch: Launch | None = None

    def __post_init__(self) -> None:
        if not TAKEN.fits(self.taken):
            example = "2026-01-15T09:30:00Z"
            raise BadInput(f"a probe was taken at {self.taken[:40]!r}; write the time like {example}")
        if not (self.host.host or "").strip():
            raise BadInput("a probe names no host; a record is of one host and says which")


def make_record(host: HostFacts, taken: str, launch: Launch | None = None) -> ProbeRecord:
    """The record of a host just probed.

    With a warning where the launcher started more processes than there are GPUs to see.
    """
    if launch is not None and launch.local_world is not None and launch.local_world > len(host.gpus):
        started = f"{launch.launcher} started {launch.local_world} processes on {host.host}"
        shown = f"NVML shows {len(host.gpus)} GPUs: the job may see a part of them"
        host = noted(host, warnings=[f"{started} and {shown}"])
    return ProbeRecord(host, taken, launch)


def record_name(record: ProbeRecord) -> str:
    """The file's name: of the host, and of the machine, since two hosts may both be called localhost.

    >>> host = HostFacts("NVML", "probe", "read", host="node/7", machine="3fa2c1d0e4b5a697")
    >>> record_name(ProbeRecord(host, "2026-01-15T09:30:00Z"))
    'moeplan-probe-node_7-3fa2c1.json'
    """
    parts = [record.host.host or "", (record.host.machine or "")[:6]]
    safe = [re.sub(r"[^A-Za-z0-9._-]", "_", part)[:80] for part in parts if part]
    return f"moeplan-probe-{'-'.join(safe)}.json"


def write_record(record: ProbeRecord, folder: Path) -> Path:
    """The path of the written file. BadInput where the folder is not there or not writable."""
    return write_json(folder / record_name(record), record_to_dict(record))


def record_to_dict(record: ProbeRecord) -> dict[str, Any]:
    return {"schema": SCHEMA, **to_plain(record)}


def read_record(path: str | Path) -> ProbeRecord:
    return record_from_dict(read_json(path, LARGEST_RECORD_BYTES), str(path))


def record_from_dict(value: Any, where: str) -> ProbeRecord:
    """The record of plain data.

    BadInput where it is of another schema or says what a probe cannot have seen.
    """
    PROBE.check(value, where)
    try:
        told = {key: entry for key, entry in value.items() if key != "schema"}
        record = from_plain(ProbeRecord, told, where)
        check_host(record.host)
    except BadInput as error:
        raise error if str(error).startswith(f"{where}:") else BadInput(f"{where}: {error}") from error
    return record
