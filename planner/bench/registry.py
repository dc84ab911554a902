"""Benchmark: studies of what moeplan does beside what others do, in the same process.

One file a study; a file with a `run` is one.

    TITLE, and run(peers, repeats, progress) -> Table

Ratios carry over to other machines; seconds do not.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.base import BadInput, modules_with

if TYPE_CHECKING:
    from planner.bench.frame import Table
    from planner.solvers import Progress


def study_names() -> list[str]:
    """Names of the studies, in alphabetical order."""
    return list(_studies())


def run_bench(
    names: Sequence[str], peer_wheels: Sequence[Path], repeats: int, progress: "Progress | None" = None
) -> "dict[str, Table]":
    """The tables of these studies, all where none is named.

    BadInput for an unknown study, no repeats, or a wheel that holds no peer.
    """
    from planner.bench.peers import load_peers

    if repeats < 1:
        raise BadInput(f"--repeats {repeats}: it must be at least 1")
    known = _studies()
    names = [name.replace("-", "_") for name in names]
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise BadInput(f"study {unknown[0]!r} is unknown; known are {', '.join(known)}")
    peers = load_peers(peer_wheels)
    chosen = [name for name in known if name in names or not names]
    tables = {}
    for number, name in enumerate(chosen):
        tables[name] = known[name].run(peers, repeats, _part(progress, number, len(chosen), name))
    return tables


def _studies() -> dict[str, Any]:
    """Every module here that has a `run` is a study; the others are what studies share."""
    return dict(modules_with("planner.bench", "run"))


def _part(
    progress: "Progress | None", number: int, count: int, name: str
) -> "Callable[[float, str], None] | None":
    if progress is None:
        return None
    return lambda share, text: progress((number + share) / count, f"{name}: {text}")
