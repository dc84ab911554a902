"""Lines that a person acts on: one a question, as long as a terminal is wide. A name is folded, never cut."""

import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 80  # columns of a terminal that nobody has made wider


def line(label: str, *offers: str) -> str:
    """The first offer that fits beside its label; where none does the last, folded.

    >>> line("Plan", "a name and all that there is to say of it", "a name")
    'Plan   a name and all that there is to say of it'
    """
    for offer in offers:
        if len(_labelled(label, offer)) <= WIDTH:
            return _labelled(label, offer)
    return "\n".join(
        textwrap.wrap(_labelled(label, offers[-1]), WIDTH, subsequent_indent=" " * 7, break_on_hyphens=False)
    )


def joined(parts: Sequence[str], *, least: int = 1) -> list[str]:
    """Offers for a line: all parts, then ever fewer of the last, down to `least`.

    >>> joined(["a", "b", "c"], least=2)
    ['a, b, c', 'a, b']
    """
    return [", ".join(parts[:count]) for count in range(len(parts), least - 1, -1)]


def _labelled(label: str, text: str) -> str:
    return f"{label:<6} {text}"


def fullest(texts: Iterable[str]) -> list[str]:
    """The texts, each once, less those all of whose clauses another one has.

    >>> fullest(["7% off", "7% off; wider was not measured", "9% off", "7% off"])
    ['7% off; wider was not measured', '9% off']
    """
    clauses = {text: set(text.split("; ")) for text in texts}
    return [text for text, own in clauses.items() if not any(own < other for other in clauses.values())]
