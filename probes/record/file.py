"""A probe of one host as a file: JSON, schema 'moeplan/probe/1', written whole or not at all, read back strictly."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planner.base import BadInput, read_json, write_json
from planner.topology import LARGEST_NODE_GPUS, LARGEST_NODE_NICS
from probes.base.facts import PATHS, GpuFact, HostFacts
from probes.ranks.launch import Launch
from probes.record.facts_json import from_plain, to_plain

SCHEMA = "moeplan/probe/1"
LARGEST_RECORD_BYTES = 16 << 20
_TAKEN = re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z")
_LABEL = re.compile(r"NV[0-9]{1,2}|" + "|".join(PATHS))
_KINDS = (None, "none", "switch", "mesh", "bridge")


@dataclass(frozen=True)
class ProbeRecord:
    """One host at one time: `taken` is UTC like '2026-01-15T09:30:00Z'."""

    host: HostFacts
    taken: str
    launch: Launch | None = None

    def __post_init__(self) -> None:
        if not _TAKEN.fullmatch(self.taken):
            raise BadInput(
                f"a probe was taken at {self.taken[:40]!r}; write the time like 2026-01-15T09:30:00Z"
            )
        if not (self.host.host or "").strip():
            raise BadInput("a probe names no host; a record is of one host and says which")


def make_record(host: HostFacts, taken: str, launch: Launch | None = None) -> ProbeRecord:
    """The record of a host just probed, with a warning where the launcher started more processes than there are GPUs to see."""
    if launch is not None and launch.local_world is not None and launch.local_world > len(host.gpus):
        told = f"{launch.launcher} started {launch.local_world} processes on {host.host} and NVML shows {len(host.gpus)} GPUs: the job may see a part of them"
        host = replace(host, warnings=(*host.warnings, told))
    return ProbeRecord(host, taken, launch)


def record_name(record: ProbeRecord) -> str:
    """The file's name: of the host, and of the machine, since two hosts may both be called localhost.

    >>> record_name(ProbeRecord(HostFacts("NVML", "probe", "read", host="node/7", machine="3fa2c1d0e4b5a697"), "2026-01-15T09:30:00Z"))
    'moeplan-probe-node_7-3fa2c1.json'
    """
    parts = [record.host.host or "", (record.host.machine or "")[:6]]
    return (
        "moeplan-probe-"
        + "-".join(re.sub(r"[^A-Za-z0-9._-]", "_", part)[:80] for part in parts if part)
        + ".json"
    )


def write_record(record: ProbeRecord, folder: Path) -> Path:
    """The path of the written file. BadInput where the folder is not there or not writable."""
    return write_json(folder / record_name(record), record_to_dict(record))


def record_to_dict(record: ProbeRecord) -> dict[str, Any]:
    return {"schema": SCHEMA, **to_plain(record)}


def read_record(path: str | Path) -> ProbeRecord:
    return record_from_dict(read_json(path, LARGEST_RECORD_BYTES), str(path))


def record_from_dict(value: Any, where: str) -> ProbeRecord:
    """The record of plain data. BadInput where it is of another schema or says what a probe cannot have seen."""
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        found = value.get("schema") if isinstance(value, dict) else None
        raise BadInput(
            f"{where}: not a probe file of this version (schema {str(found)[:40]!r}, expected {SCHEMA!r}); probe again with this version of moeplan"
        )
    try:
        record = from_plain(
            ProbeRecord, {key: entry for key, entry in value.items() if key != "schema"}, where
        )
        _check(record.host)
    except BadInput as error:
        raise error if str(error).startswith(f"{where}:") else BadInput(f"{where}: {error}") from error
    return record


def _check(host: HostFacts) -> None:
    """What types cannot say: indices, labels, ranges, and domains that hold every GPU once."""
    gpus, nics = len(host.gpus), len(host.nics)
    if not 1 <= gpus <= LARGEST_NODE_GPUS or nics > LARGEST_NODE_NICS:
        raise BadInput(
            f"host: {gpus} GPUs and {nics} NICs; a host has 1 to {LARGEST_NODE_GPUS} GPUs and at most {LARGEST_NODE_NICS} NICs"
        )
    if host.evidence != "read":
        raise BadInput(f"host: evidence is {host.evidence[:40]!r}; a probe is always 'read'")
    if [gpu.index for gpu in host.gpus] != list(range(gpus)):
        raise BadInput(
            f"host: gpus: the indices are {[gpu.index for gpu in host.gpus][:20]}; they count from 0 without gaps"
        )
    if host.nvlink_kind not in _KINDS:
        raise BadInput(
            f"host: nvlink_kind is {host.nvlink_kind!r}; it is one of none, switch, mesh, bridge, or left out"
        )
    if host.domains is not None and sorted(gpu for domain in host.domains for gpu in domain) != list(
        range(gpus)
    ):
        raise BadInput(f"host: domains: must hold each of the {gpus} GPUs once")
    for name, paths, columns in (("gpu_paths", host.gpu_paths, gpus), ("nic_paths", host.nic_paths, nics)):
        for (a, b), label in paths.items():
            if not (a < gpus and b < columns and (name != "gpu_paths" or a < b) and _LABEL.fullmatch(label)):
                raise BadInput(
                    f"host: {name}: '{a}-{b}' is {label[:40]!r}; expected GPUs and NICs that are there, and one of {', '.join(PATHS)}, NV1 to NV99"
                )
    _check_uuids(host.gpus)
    figures = [(f"gpus[{gpu.index}]", to_plain(gpu)) for gpu in host.gpus] + [
        (f"nics[{index}]", to_plain(nic)) for index, nic in enumerate(host.nics)
    ]
    for place, told in figures:
        for name, figure in told.items():
            if isinstance(figure, (int, float)) and (
                figure < 0 or (name.endswith(("bytes", "_per_s")) and figure == 0)
            ):
                raise BadInput(f"host: {place}: {name} is {figure}; what is not known is left out")


def _check_uuids(gpus: Sequence[GpuFact]) -> None:
    uuids = [gpu.uuid for gpu in gpus if gpu.uuid]
    twice = next((uuid for uuid in uuids if uuids.count(uuid) > 1), None)
    if twice:
        raise BadInput(f"host: gpus: {twice[:60]} is listed twice")
