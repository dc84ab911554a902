"""What 'moeplan probe' has written: one host a file.

Several files given together are better merged by `probes.record.merge`, which misses absent hosts.
"""

from planner.base import BadInput, parse_json
from probes.base.facts import HostFacts
from probes.importers.text import utf8_text
from probes.record.file import LARGEST_RECORD_BYTES, record_from_dict

_MARK = b'"moeplan/probe/'


def recognise(content: bytes, name: str) -> bool:
    """By the schema, which is the first entry of the file."""
    return content.lstrip()[:1] == b"{" and _MARK in content[:256]


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """The host, as it was probed. BadInput where the file is damaged or of another version."""
    if len(content) > LARGEST_RECORD_BYTES:
        most = f"{LARGEST_RECORD_BYTES:,} that a probe of one host can have"
        raise BadInput(f"{name}: {len(content):,} bytes is more than the {most}")
    text = utf8_text(content, name, " text; the file is damaged, probe again")
    return (record_from_dict(parse_json(text, name), name).host,)
