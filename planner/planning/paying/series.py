"""The load as windows in time, each with the steps of the workload that it stands for.

Shapes: W windows.
"""

from dataclasses import dataclass, replace

import numpy as np

from planner.base import BadInput
from planner.cost import Floats, windows_of
from planner.load import LoadProfile
from planner.problem import Problem

MOST_WINDOWS = 8  # on either side, whatever the number of domains


@dataclass(frozen=True, eq=False)
class Series:
    """Windows in the order of time; plans are fitted to the first, and judged on the others.

    `unseen` is False where the load is one window: it then stands on both sides.
    """

    fitted: tuple[LoadProfile, ...]
    judged: tuple[LoadProfile, ...]
    steps_F: Floats
    steps_J: Floats
    unseen: bool

    @property
    def loads(self) -> tuple[LoadProfile, ...]:
        """Each window once."""
        return (*self.fitted, *self.judged) if self.unseen else self.fitted

    @property
    def steps_W(self) -> Floats:
        return np.concatenate([self.steps_F, self.steps_J]) if self.unseen else self.steps_F

    @property
    def judged_steps(self) -> float:
        return float(self.steps_J.sum())


def series_of(problem: Problem, held_out: LoadProfile | None, window_steps: float | None = None) -> Series:
    """The fitted load of the problem and the held-out one, neighbouring windows summed into a few.

    A window stands for as many steps as its tokens make, or for `window_steps` where that is given.
    """
    if window_steps is not None and not window_steps > 0:
        raise BadInput(f"--window-steps {window_steps:g}: a window stands for more than 0 steps")
    fitted, steps_F = _windows(problem, problem.load, window_steps)
    if held_out is None:
        return Series(fitted, fitted, steps_F, steps_F, unseen=False)
    judged, steps_J = _windows(problem, held_out, window_steps)
    return Series(fitted, judged, steps_F, steps_J, unseen=True)


def _windows(
    problem: Problem, load: LoadProfile, window_steps: float | None
) -> tuple[tuple[LoadProfile, ...], Floats]:
    count = max(MOST_WINDOWS // max(len(load.domain_names), 1), 1)
    found = windows_of(problem, load, count)
    if window_steps is not None:
        return found.loads, np.array(found.weight_W) * window_steps
    return found.loads, np.array([steps_of(problem, one) for one in found.loads])


def steps_of(problem: Problem, load: LoadProfile) -> float:
    """Steps that the assignments of a load make, by the layer that was seen most."""
    tokens = float(load.total_LE.sum(axis=1).max()) / problem.model.top_k
    return tokens / (problem.workload.tokens_per_rank * problem.gpus)


def joined(loads: tuple[LoadProfile, ...]) -> LoadProfile:
    """The windows as one profile of counts."""
    tokens_WLE = np.concatenate([load.tokens_WLE for load in loads])
    return replace(loads[0], tokens_WLE=tokens_WLE, window_names=(), domains=(), trace=None)
