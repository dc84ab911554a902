"""Methods: Problem -> Placement. One file per idea, and every file that has a `solve` is a method; the others hold kernels.

    solve(problem, *, seed=0, budget_seconds=None, progress=None) -> Placement

Same problem and seed: same placement. `budget_seconds` is a wall-clock limit, so an answer that it cut short is not reproducible.
`progress` is called with the share done (0 to 1) and a word on what is being done.

A method with several answers to offer has `candidates` too, with the same arguments: an iterator of placements, the most promising first. `auto` tries
them all, or as many as its budget allows. A layer's row must not depend on which other layers are solved with it: layers are dealt out to processes.
"""

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from planner.errors import BadInput

if TYPE_CHECKING:  # NumPy and the nouns load when a method does
    from planner.placement import Placement
    from planner.problem import Problem

Progress = Callable[[float, str], None]


class Method(Protocol):
    def __call__(self, problem: "Problem", *, seed: int = 0, budget_seconds: float | None = None, progress: Progress | None = None) -> "Placement": ...


class Candidates(Protocol):
    def __call__(
        self, problem: "Problem", *, seed: int = 0, budget_seconds: float | None = None, progress: Progress | None = None
    ) -> "Iterator[Placement]": ...


def method_names() -> list[str]:
    """Names of the methods, in alphabetical order: `round-robin` is the file round_robin.py."""
    return sorted(_methods())


def find_method(name: str) -> Method:
    method: Method = _found(name).solve
    return method


def find_candidates(name: str) -> Candidates:
    """What a method offers: its `candidates`, or the one answer of its `solve`."""
    module = _found(name)

    def only(problem: "Problem", *, seed: int = 0, budget_seconds: float | None = None, progress: Progress | None = None) -> "Iterator[Placement]":
        yield module.solve(problem, seed=seed, budget_seconds=budget_seconds, progress=progress)

    offered: Candidates = getattr(module, "candidates", only)
    return offered


def _found(name: str) -> Any:
    methods = _methods()
    if name not in methods:
        nearest = difflib.get_close_matches(name, methods, n=1)
        raise BadInput(f"method {name!r} is unknown; {f'did you mean {nearest[0]!r}? ' if nearest else ''}known are {', '.join(sorted(methods))}")
    return methods[name]


def _methods() -> dict[str, Any]:
    """Modules with a `solve`, by the name of the method."""
    modules = {found.name: importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)}
    return {name.replace("_", "-"): module for name, module in modules.items() if hasattr(module, "solve")}
