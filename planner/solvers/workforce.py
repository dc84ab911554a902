"""Who works on blocks of layers, by when, and what the work is."""

from dataclasses import dataclass
from typing import Protocol

from planner.problem import Problem
from planner.solvers.kernels.arrays import Solved
from planner.solvers.registry import Progress


class SolveBlock(Protocol):
    """Solves a problem of a few layers; it travels to other processes, so it must be picklable."""

    def __call__(
        self, problem: Problem, /, *, budget_seconds: float | None, progress: Progress | None
    ) -> Solved: ...


@dataclass(frozen=True)
class Workforce:
    """Who works: `workers` processes (None: as many as pay), here or at a Ray cluster's `ray` address."""

    workers: int | None = None
    ray: str | None = None


BY_SIZE = Workforce()


@dataclass(frozen=True)
class Deadline:
    """A wall-clock limit in seconds, and whom to tell how far the work is."""

    budget_seconds: float | None = None
    progress: Progress | None = None
