"""Loads as whole numbers, which is all that CP-SAT computes with; and one way to run it."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

LARGEST_TOTAL = 1 << 44  # of a layer in whole units; sums stay far inside 64 bits and inside a float's 53


class Answer(NamedTuple):
    """A placement of one layer, whether no other can be better, and a peak that no placement beats.

    The peak is in the unit given.
    """

    expert_P: npt.NDArray[np.int64]
    proven: bool
    bound: float


class Effort(NamedTuple):
    """When to stop.

    Deterministic seconds are CP-SAT's count of work and reproducible; wall seconds are not.
    """

    deterministic_seconds: float = 20.0
    wall_seconds: float | None = None
    seed: int = 0


def whole_scale(load_E: npt.NDArray[np.floating], divisor: int) -> tuple[float, bool]:
    """What to multiply loads by, and whether load / k is then whole for every k that divides `divisor`.

    If not, rounding down loses less than a unit.
    """
    total = float(load_E.sum())
    if total * divisor < LARGEST_TOTAL and (load_E == np.floor(load_E)).all():
        return float(divisor), True
    return LARGEST_TOTAL / total, False


def lcm_up_to(largest: int) -> int:
    return math.lcm(*range(1, min(largest, 40) + 1))  # past 40 the product exceeds any total we accept


def run(model: "cp_model.CpModel", effort: Effort) -> tuple[Any, bool]:
    """The solver after its run, and whether it holds a solution.

    One worker, so that deterministic time is deterministic.
    """
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = effort.seed
    # Else it would end this one search, and the next would begin
    solver.parameters.catch_sigint_signal = False
    solver.parameters.max_deterministic_time = effort.deterministic_seconds
    if effort.wall_seconds is not None:
        solver.parameters.max_time_in_seconds = max(effort.wall_seconds, 0.01)
    status = solver.solve(model)
    return solver, status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
