"""What 'moeplan probe --measure' has written."""

from dataclasses import replace

from planner.base import parse_json
from probes.base.facts import MeasureFacts
from probes.importers.text import utf8_text
from probes.measure.file import measurement_from_dict

_MARK = b'"moeplan/measure/'


def recognise(content: bytes, name: str) -> bool:
    """By the schema, which is the first entry of the file."""
    return content.lstrip()[:1] == b"{" and _MARK in content[:256]


def read(content: bytes, name: str) -> tuple[MeasureFacts, ...]:
    """The measurements, each saying when it was taken.

    BadInput where the file is damaged or another version's.
    """
    text = utf8_text(content, name, " text; the file is damaged, measure again")
    measurement = measurement_from_dict(parse_json(text, name), name)
    return tuple(replace(facts, source=f"{facts.source}, {measurement.taken}") for facts in measurement.facts)
