"""Which kind of file of ours a value says that it is, and what to do about another kind or version."""

import re
from dataclasses import dataclass
from typing import Any

from planner.base import BadInput
from planner.schema.shape import Shape

_SCHEMA = re.compile(r"moeplan/([a-z]{1,20})/([0-9]{1,4})")


@dataclass(frozen=True)
class Kind:
    """A kind of file: what it is called ('a plan file'), what makes one, and what it holds.

    `schema` is what the file says under that key, like 'moeplan/plan/1'; empty where it says nothing.
    """

    called: str
    schema: str
    made_by: str
    shape: Shape

    def check(self, value: Any, where: str) -> None:
        """BadInput where the value is of another kind or version, or holds what no such file does."""
        if self.schema:
            self._check_schema(value, where)
        self.shape.check(value, where)

    def _check_schema(self, value: Any, where: str) -> None:
        said = value.get("schema") if isinstance(value, dict) else None
        if said == self.schema:
            return
        found = _schema_of(value)
        text = f"{where}: not {self.called} (its schema is {str(said)[:40]!r}, expected {self.schema!r}); "
        if found is None or found[0] != self.schema.split("/")[1]:
            raise BadInput(f"{text}{self.made_by}")
        newer = found[1] > int(self.schema.rsplit("/", 1)[1])
        which = "a newer moeplan wrote it: update this one" if newer else "an older moeplan wrote it"
        raise BadInput(f"{text}{which}, or make it anew: {self.made_by}")


def _schema_of(value: Any) -> tuple[str, int] | None:
    """('plan', 1) of a mapping that says 'moeplan/plan/1'; None where it says nothing of the kind."""
    said = value.get("schema") if isinstance(value, dict) else None
    match = _SCHEMA.fullmatch(said) if isinstance(said, str) else None
    return (match[1], int(match[2])) if match else None
