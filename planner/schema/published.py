"""A kind of file as JSON Schema text, for editors and for programs of others."""

from typing import Any

from planner.schema.versions import Kind

DIALECT = "https://json-schema.org/draft/2020-12/schema"
STRICTER = (
    "moeplan reads more strictly than a schema can say: a whole number has no fraction or exponent (3.0 is "
    "none), each key is there once, numbers are finite, and the parts must agree with each other"
)


def published(name: str, kind: Kind) -> dict[str, Any]:
    """The JSON Schema of a kind of file."""
    identity = {"$id": f"urn:{kind.schema.replace('/', ':')}"} if kind.schema else {}
    return {
        "$schema": DIALECT,
        **identity,
        "title": f"moeplan {name}: {kind.called}",
        "$comment": STRICTER,
        **kind.shape.json_schema(),
    }
