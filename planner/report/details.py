"""The answer first: its lines and the warnings; tables and notes for those who ask for them."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

WARNING = "WARNING"


def answered(
    lines: Sequence[str], parts: Sequence[RenderableType], notes: Sequence[str], *, details: bool
) -> RenderableType:
    """The lines, each warning, and then all of `parts` and notes, or how many of them there are."""
    warnings = [note for note in notes if note.startswith(WARNING)]
    others = [note for note in notes if not note.startswith(WARNING)]
    head = Text("\n".join([*lines, *warnings]))
    if not details:
        tables = sum(isinstance(part, Table) for part in parts)
        hidden = " and ".join(
            _counted(number, name) for number, name in ((tables, "table"), (len(others), "note")) if number
        )
        return Group(head, Text(f"--details shows {hidden}", style="dim")) if hidden else head
    spaced: list[RenderableType] = [each for part in parts for each in (Text(""), part)]
    said = [Text("\n".join(["", *(f"Note: {note}" for note in others)]))] if others else []
    return Group(head, *spaced, *said)


def _counted(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"
