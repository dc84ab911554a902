"""The score of a placement: its predicted seconds in a few windows of a load, made into one number a layer by the problem's objective.

Shapes: W windows, L layers.
"""

from dataclasses import dataclass

import numpy as np

from planner.cost import cost
from planner.load import LoadProfile
from planner.load_split import window_groups
from planner.placement import Placement
from planner.problem import Problem
from planner.traffic import Floats

MOST_WINDOWS = 8  # of a domain, over which a placement is judged
WINDOW_WORK = 200_000_000  # cells of traffic matrices that one judgement may take


@dataclass(frozen=True, eq=False)
class Windows:
    """A load as a few profiles of one window each. `weight_W`: how many windows of the load each stands for."""

    loads: tuple[LoadProfile, ...]
    weight_W: tuple[int, ...]
    domain_W: tuple[str, ...]


def affordable_windows(problem: Problem, load: LoadProfile) -> int:
    """How many windows of each domain a placement is judged over: at most eight, fewer where evaluating one is expensive."""
    affordable = WINDOW_WORK // (problem.gpus**2 * len(problem.model.placed_layer_ids) * max(len(load.domain_names), 1))
    return int(min(max(affordable, 1), MOST_WINDOWS))


def windows_of(problem: Problem, load: LoadProfile, count: int | None = None) -> Windows:
    """Neighbouring windows of a domain are summed, so that at most `count` of each are left; as many as are affordable where it is not given."""
    groups = window_groups(load, count or affordable_windows(problem, load))
    loads = tuple(load.with_windows(list(range(first, end))) for first, end in groups)
    return Windows(loads, tuple(end - first for first, end in groups), tuple(load.domains[first] if load.domains else "" for first, _ in groups))


def objective_seconds_L(problem: Problem, windows: Windows, placement: Placement) -> Floats:
    """The number that a plan is to make small, per layer: a placement that fits the sum of the windows alone fits none of them, nor the next."""
    seconds_WL = np.array([cost(problem, placement, load).layer_seconds_L for load in windows.loads])
    return problem.objective.seconds_L(seconds_WL, windows.weight_W, windows.domain_W)
