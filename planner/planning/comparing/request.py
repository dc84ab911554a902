"""What is asked to be compared, and which one thing varies."""

from dataclasses import dataclass
from pathlib import Path

from planner.base import BadInput
from planner.planning.evaluation import Anew

OWN = Anew()  # everything as the first plan has it


@dataclass(frozen=True)
class CompareRequest:
    """What is compared: files, or one plan on several machines, or under several engines."""

    files: tuple[Path, ...]
    topologies: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    model: str | None = None  # for maps without a plan
    anew: Anew = OWN  # the load and the step


def varied_of(request: CompareRequest) -> str:
    """placement, topology or engine. BadInput where that is not exactly one."""
    several = {
        "placement": len(request.files) > 1,
        "topology": len(request.topologies) > 1,
        "engine": len(request.engines) > 1,
    }
    names = [name for name, holds in several.items() if holds]
    if len(names) != 1:
        given = "nothing varies" if not names else f"{' and '.join(names)} vary"
        raise BadInput(
            f"compare: {given}; give several plans or maps, or one plan with --topology twice or more, "
            "or one with --engine twice or more"
        )
    return names[0]


def only(texts: tuple[str, ...]) -> str | None:
    """The one text; None where there is none, or where they are what varies."""
    return texts[0] if len(texts) == 1 else None
