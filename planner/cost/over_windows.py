"""The score of a placement: its seconds in a few windows of a load, one number a layer.

The problem's objective makes the seconds of the windows into that number.

Shapes: W windows, L layers.
"""

from dataclasses import dataclass, replace

import numpy as np

from planner.cost.hits import TRACED_TOKENS
from planner.cost.routing import Floats
from planner.cost.step import costs
from planner.cost.traffic import units
from planner.load import LoadProfile, Trace, window_groups
from planner.placement import Placement
from planner.problem import Problem

MOST_WINDOWS = 8  # of a domain, over which a placement is judged
WINDOW_WORK = 200_000_000  # cells of traffic matrices that one judgement may take
LP_CELLS = 7  # that the best split of a layer is worth, for each pair of its slots: 0.1 us
# cells, tokens x places of sources that differ, that one judgement of a layer may take over all windows
TRACED_WORK = 3_000_000
FEWEST_TOKENS = 512  # of a trace that a window is judged by; where that is too much work, windows are fewer


@dataclass(frozen=True, eq=False)
class Windows:
    """A load as a few profiles of one window each.

    `weight_W`: how many windows of the load each stands for.
    """

    loads: tuple[LoadProfile, ...]
    weight_W: tuple[int, ...]
    domain_W: tuple[str, ...]


def affordable_windows(problem: Problem, load: LoadProfile) -> int:
    """How many windows of each domain a placement is judged over: at most eight, fewer where evaluating one
    is expensive.
    """
    domains = max(len(load.domain_names), 1)
    cells = LP_CELLS * problem.slots**2 if problem.replica_rule == "lp" else problem.gpus**2
    affordable = WINDOW_WORK // (cells * len(problem.model.placed_layer_ids) * domains)
    if load.trace is not None:
        affordable = min(affordable, TRACED_WORK // (cells_a_token(problem) * FEWEST_TOKENS * domains))
    return int(min(max(affordable, 1), MOST_WINDOWS))


def cells_a_token(problem: Problem) -> int:
    """Cells that one traced token takes: places that it may reach, from every node, or from one where all
    sources are alike.
    """
    if problem.workload.transport not in ("rank", "node"):
        return 1
    places = problem.gpus + (int(units(problem).max()) + 1 if problem.workload.transport == "node" else 0)
    return places * (problem.topology.node_count if problem.spreads_over_nodes else 1)


def windows_of(problem: Problem, load: LoadProfile, count: int | None = None) -> Windows:
    """Neighbouring windows of a domain are summed, so that at most `count` of each are left; as many as are
    affordable where it is not given.
    """
    groups = window_groups(load, count or affordable_windows(problem, load))
    tokens = min(max(TRACED_WORK // (cells_a_token(problem) * len(groups)), FEWEST_TOKENS), TRACED_TOKENS)
    loads = tuple(_thinned(load.with_windows(list(range(first, end))), tokens) for first, end in groups)
    return Windows(
        loads,
        tuple(end - first for first, end in groups),
        tuple(load.domains[first] if load.domains else "" for first, _ in groups),
    )


def _thinned(load: LoadProfile, tokens: int) -> LoadProfile:
    """The same counts, with a trace of no more than about so many tokens, evenly spaced.

    At most TRACED_TOKENS would be looked at anyway.
    """
    trace = load.trace
    step = 1 if trace is None or tokens >= TRACED_TOKENS else max(trace.experts_LTK.shape[1] // tokens, 1)
    if trace is None or step == 1:
        return load
    experts_LTK = trace.experts_LTK[:, ::step].copy()
    lengths = np.diff(-(-np.cumsum((0, *trace.sequence_lengths)) // step))
    return replace(load, trace=Trace(experts_LTK, tuple(lengths.tolist())))


def objective_seconds_L(problem: Problem, windows: Windows, placement: Placement) -> Floats:
    """The number that a plan is to make small, per layer: a placement that fits the sum of the windows alone
    fits none of them, nor the next.
    """
    seconds_WL = np.array([found.layer_seconds_L for found in costs(problem, placement, windows.loads)])
    return problem.objective.seconds_L(seconds_WL, windows.weight_W, windows.domain_W)
