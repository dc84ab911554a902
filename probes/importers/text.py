"""A file's bytes as text, and text as YAML, with one line for a person where they are neither."""

from typing import Any

from planner.base import BadInput, parse_yaml

LARGEST_YAML_BYTES = 4 << 20


def utf8_text(content: bytes, name: str, what_then: str = " text") -> str:
    """The text without a byte order mark.

    BadInput names the first byte that is not UTF-8; `what_then` ends it.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{name}: byte {error.start} is not UTF-8{what_then}") from error


def yaml_value(text: str, name: str) -> Any:
    """The value of a text of bearable length."""
    if len(text) > LARGEST_YAML_BYTES:
        raise BadInput(
            f"{name}: {len(text):,} characters of YAML are more than the {LARGEST_YAML_BYTES:,} we read"
        )
    return parse_yaml(text, name)
