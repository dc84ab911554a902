"""Measurements as a file: JSON, schema 'moeplan/measure/1'.

An importer reads it back, so a cluster can be measured once and planned for often.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.base import write_json
from planner.schema import Kind, Listing, Record, Text, Whole, shape_of
from probes.base.facts import MeasureFacts
from probes.record.facts_json import from_plain, to_plain
from probes.record.record_shape import TAKEN

SCHEMA = "moeplan/measure/1"
MOST_RUNS = 10_000
MEASURE = Kind(
    "a measurement",
    SCHEMA,
    "`moeplan probe --measure --record FOLDER` writes one",
    Record(
        {
            "schema": Text((SCHEMA,)),
            "taken": TAKEN,
            "facts": Listing(
                shape_of(MeasureFacts, {"ranks": Whole(0, 1 << 20), "groups": Whole(1, 1 << 20)}, null=False),
                0,
                MOST_RUNS,
            ),
        }
    ),
)


@dataclass(frozen=True)
class Measurement:
    """What was measured, and when (UTC, like '2026-01-15T09:30:00Z')."""

    taken: str
    facts: tuple[MeasureFacts, ...]


def write_measurement(measurement: Measurement, path: Path) -> Path:
    return write_json(path, {"schema": SCHEMA, **to_plain(measurement)})


def measurement_from_dict(value: Any, where: str) -> Measurement:
    """BadInput where the file is of another version, damaged, or holds nothing."""
    MEASURE.check(value, where)
    return from_plain(Measurement, {key: entry for key, entry in value.items() if key != "schema"}, where)
