"""Methods: Problem -> Placement, by name. One file in `methods/` per idea; what they share is in `kernels/`.

    solve(problem, *, seed=0, budget_seconds=None, progress=None) -> Placement

Same problem and seed: same placement. `budget_seconds` is a wall-clock limit, so an answer that it cut short
is not reproducible. `progress` is called with the share done (0 to 1) and a word on what is being done.

A method with several answers to offer has `candidates` too, with the same arguments: an iterator of
placements, the most promising first. `auto` tries them all, or as many as its budget allows. A layer's row
must not depend on which other layers are solved with it: layers are dealt out to processes.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from planner.base import find_named, modules_with

if TYPE_CHECKING:  # NumPy and the nouns load when a method does
    from planner.placement import Placement
    from planner.problem import Problem

Progress = Callable[[float, str], None]


Answer_co = TypeVar("Answer_co", covariant=True)


class Method(Protocol[Answer_co]):
    def __call__(
        self,
        problem: "Problem",
        *,
        seed: int = 0,
        budget_seconds: float | None = None,
        progress: Progress | None = None,
    ) -> Answer_co: ...


def method_names() -> list[str]:
    """Names of the methods, in alphabetical order: `round-robin` is the file round_robin.py."""
    return sorted(_methods())


def find_method(name: str) -> "Method[Placement]":
    method: Method[Placement] = _found(name).solve
    return method


def find_candidates(name: str) -> "Method[Iterator[Placement]]":
    """What a method offers: its `candidates`, or the one answer of its `solve`."""
    module = _found(name)

    def only(problem: "Problem", **settings: Any) -> "Iterator[Placement]":
        yield module.solve(problem, **settings)

    offered: Method[Iterator[Placement]] = getattr(module, "candidates", only)
    return offered


def _found(name: str) -> Any:
    return find_named(name, _methods(), "method")


def _methods() -> dict[str, Any]:
    """Modules with a `solve`, by the name of the method."""
    return {
        name.replace("_", "-"): module
        for name, module in modules_with("planner.solvers.methods", "solve").items()
    }
