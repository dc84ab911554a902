"""Search against shift: placements that are level in every window and domain of a load at once.

A placement that balances the sum alone fits none of its windows. Levelling swaps replicas under all windows
together; for several domains it also starts from replica counts made for weighed sums of them, and the
weights follow the worst domain, layer by layer.

Shapes: D domains, W windows, L layers, E experts, G GPUs.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from planner.cost import Windows
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem
from planner.solvers.best import Score, best_rows
from planner.solvers.kernels.arrays import protected, spread_nodes
from planner.solvers.kernels.connect import connect
from planner.solvers.kernels.level import Limits, level
from planner.solvers.kernels.packing import Ints, Loads, in_order, peaks
from planner.solvers.registry import find_method

ROUNDS = 4  # of weights that follow the worst domain
STEP = 4.0  # how sharply they follow: the power of a domain's peak beside the mean of all
# Of a layer's score, where windows are a sample of one series: what fits them better by less is as often
# worse on others (docs/log.md)
WORTH = 0.005
SCALE = 1e9  # weighed loads are counts again


def levelled(
    problem: Problem,
    windows: Windows,
    placement: Placement,
    score: Score,
    more: Callable[[], bool] = lambda: True,
) -> Placement:
    """No layer scores worse than in `placement`.

    Nothing is drawn. `more` is asked before each candidate whether to go on.
    """
    if (len(windows.loads) == 1 and problem.speed_G is None) or not more():
        return placement
    worth = WORTH if _one_series(windows) and not problem.objective.robust else 0.0
    return best_rows(placement, _candidates(problem, windows, placement), score, more, worth)


def _one_series(windows: Windows) -> bool:
    """Several windows of one domain, or one of each, which are split like any series."""
    count, domains = len(windows.loads), len(set(windows.domain_W))
    return count > 1 and domains in (1, count)


def joined(problem: Problem, placement: Placement) -> Placement:
    """Shared experts join all GPUs of every layer; where that took swaps the layer is balanced again."""
    node_G = problem.node_G if problem.survive is not None and problem.survive.node else None
    start_LP = protected(problem, placement.expert_LP)
    expert_LP = connect(problem.shares_LE, start_LP, problem.gpus, problem.speed_G, node_G)
    changed = np.flatnonzero((expert_LP != placement.expert_LP).any(axis=1))
    if len(changed):
        spread_G = None if node_G is None else spread_nodes(problem)
        limits = Limits(problem.gpus, problem.speed_G, spread_G, joined=True)
        expert_LP[changed] = level(problem.shares_LE[None, changed], expert_LP[changed], limits)
    return _with_rows(problem, placement, expert_LP)


def _candidates(problem: Problem, windows: Windows, placement: Placement) -> Iterator[Placement]:
    """Levelled over windows; with several domains also over these.

    The latter from the placement, and from weighed sums of the domains' loads.
    """
    share_WLE = np.array([load.shares_LE for load in windows.loads])
    yield _level(problem, share_WLE, placement)
    loads = [problem.load.of_domain(name) for name in problem.load.domain_names]
    share_DLE = np.array([load.shares_LE for load in loads if load is not None])
    domains, layers = len(share_DLE), placement.expert_LP.shape[0]
    if domains < 2:
        return
    yield _level(problem, share_DLE, placement)
    weight_DL = np.full((domains, layers), 1 / domains)
    for _ in range(ROUNDS):
        start = _for_weights(problem, share_DLE, weight_DL)
        start = joined(problem, start) if problem.resplittable else start
        found = _level(problem, share_DLE, start)
        yield from (found, _level(problem, share_WLE, found))
        peak_DL = np.array([peaks(share_LE, found.expert_LP, problem.gpus) for share_LE in share_DLE])
        weight_DL *= (peak_DL / peak_DL.mean(axis=0)) ** STEP
        weight_DL /= weight_DL.sum(axis=0)


def _for_weights(problem: Problem, share_DLE: Loads, weight_DL: Loads) -> Placement:
    """Replica counts and packing for the weighed sum."""
    counts_LE = np.rint(SCALE * (weight_DL[:, :, None] * share_DLE).sum(axis=0)).astype(np.int64)
    weighed = LoadProfile(counts_LE[None], problem.load.layer_ids, problem.load.source)
    return find_method("refine")(replace(problem, load=weighed))


def _level(problem: Problem, share_DLE: Loads, placement: Placement) -> Placement:
    limits = Limits(problem.gpus, problem.speed_G, spread_nodes(problem), problem.resplittable)
    return _with_rows(problem, placement, level(share_DLE, placement.expert_LP, limits))


def _with_rows(problem: Problem, placement: Placement, expert_LP: Ints) -> Placement:
    return replace(placement, expert_LP=in_order(protected(problem, expert_LP), problem.gpus))
