"""The sources and the swaps by name, each a module of its folder."""

from pathlib import Path
from typing import Any, Protocol, cast

from planner.base import BadInput, find_named, modules_with
from planner.load import Source
from planner.model import ModelSpec
from probes.watching.place import Place


class SourceModule(Protocol):
    """What a module about one source offers. `NEEDS`: what of a Place it is told by, folder or urls."""

    NAME: str
    NEEDS: tuple[str, ...]

    def source(self, place: Place, model: ModelSpec) -> Source:
        """BadInput where the place is not enough."""


def find_source(name: str | None, engine: str | None, place: Place) -> SourceModule:
    """The one named; else that of the engine, where it is told by what was given; else any dumps in a folder.

    BadInput where nothing fits.
    """
    known = _sources()
    if name is not None:
        return find_named(name, known, "source")
    given = {"urls"} if place.urls else set[str]()
    given |= {"folder"} if place.folder else set()
    for likely in (engine, "dumps"):
        if likely in known and given and set(known[likely].NEEDS) <= given:
            return known[likely]
    raise BadInput(
        f"nothing tells the load of a plan for {engine or 'no engine'} by what was given; name --source "
        f"({', '.join(known)}), with --folder DIR or --server URL"
    )


def find_swapper(engine: str | None, place: Place, map_file: Path | None) -> Any:
    """How the engine is handed a placement while it serves. BadInput where it cannot be."""
    known = {module.ENGINE: module for module in modules_with("probes.watching.swaps", "ENGINE").values()}
    if engine not in known:
        raise BadInput(
            f"--apply: the plan is for {engine or 'no engine'}; {' and '.join(known)} take a placement while "
            "they serve; leave --apply out, and start the engine anew with the plan that pays"
        )
    return known[engine].swapper(place, map_file)


def _sources() -> dict[str, SourceModule]:
    found = modules_with("probes.watching.sources", "NAME")
    return {name: cast("SourceModule", module) for name, module in found.items()}
