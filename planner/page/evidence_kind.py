"""What a figure rests on, as a word with a look of its own: kinds are never mixed up."""

from planner.base import EVIDENCE_KINDS
from planner.page.html import Html, tag

KINDS = ("exact", *EVIDENCE_KINDS[:3], "fitted", *EVIDENCE_KINDS[3:])  # from strongest to weakest


def kind_of(basis: str) -> str:
    """The kind that a sentence like 'read: of the release' begins with; assumed where it names none."""
    word = basis.partition(":")[0].strip()
    return word if word in KINDS else "assumed"


def kind_tag(kind: str) -> Html:
    return tag("span", kind, class_=f"kind {kind}")
