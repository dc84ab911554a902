"""Which engine wrote a file: the readers of dumps, a module an engine, and the one that knows each file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

from planner.base import BadInput, modules_with
from planner.load.dumps.opened import Opened, open_file
from planner.load.recording import Recording
from planner.model import ModelSpec


class Reader(Protocol):
    """What a module about one engine's dumps offers."""

    def recognise(self, found: Opened, model: ModelSpec) -> bool:
        """Whether this reader knows the file, by its content where its name does not say."""

    def read(self, dumps: Sequence[Opened], model: ModelSpec, ranks: str | None) -> list[Recording]:
        """The recordings in all files of this engine together: ranks summed, parts judged against each other.

        `ranks` is as in parts.distinct_parts.
        """


def read_dumps(
    paths: Sequence[Path], model: ModelSpec, ranks: str | None = None
) -> tuple[dict[Path, list[Recording]], list[Path]]:
    """(recordings by the first file of each engine, files that no engine wrote)."""
    readers = _readers()
    claimed: dict[str, list[Opened]] = {}
    rest = []
    for path in paths:
        found = open_file(path)
        name = _engine_of(found, model, readers) if found else None
        if found and name:
            claimed.setdefault(name, []).append(found)
        else:
            rest.append(path)
    for dumps in claimed.values():
        _refuse_twice(dumps)
    by_first = {dumps[0].path: readers[name].read(dumps, model, ranks) for name, dumps in claimed.items()}
    return by_first, rest


def _engine_of(found: Opened, model: ModelSpec, readers: Mapping[str, Reader]) -> str | None:
    return next((name for name, reader in readers.items() if reader.recognise(found, model)), None)


def _refuse_twice(dumps: Sequence[Opened]) -> None:
    """BadInput where one dump was given twice: its counts would be summed with themselves."""
    paths = [found.path.resolve() for found in dumps]
    for found, path in zip(dumps, paths, strict=True):
        if paths.count(path) > 1:
            raise BadInput(f"{found.path}: this dump was given twice; give it once")


def _readers() -> dict[str, Reader]:
    """Every module here that recognises something is a reader; the others are what readers share."""
    return {
        name: cast("Reader", module)
        for name, module in modules_with("planner.load.dumps", "recognise").items()
    }
