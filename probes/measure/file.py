"""Measurements as a file: JSON, schema 'moeplan/measure/1'.

An importer reads it back, so a cluster can be measured once and planned for often.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.base import BadInput, check_keys, write_json
from probes.base.facts import MeasureFacts
from probes.record.facts_json import from_plain, to_plain

SCHEMA = "moeplan/measure/1"


@dataclass(frozen=True)
class Measurement:
    """What was measured, and when (UTC, like '2026-01-15T09:30:00Z')."""

    taken: str
    facts: tuple[MeasureFacts, ...]


def write_measurement(measurement: Measurement, path: Path) -> Path:
    return write_json(path, {"schema": SCHEMA, **to_plain(measurement)})


def measurement_from_dict(value: Any, where: str) -> Measurement:
    """BadInput where the file is of another version, damaged, or holds nothing."""
    check_keys(value, where, {"schema": str, "taken": str, "facts": list})
    if value["schema"] != SCHEMA:
        raise BadInput(
            f"{where}: its schema is {value['schema'][:40]!r}, expected {SCHEMA!r}; "
            "measure again with this version"
        )
    return from_plain(Measurement, {key: entry for key, entry in value.items() if key != "schema"}, where)
