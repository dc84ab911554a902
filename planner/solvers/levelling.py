"""Search against shift: placements that are level in every window and domain of a load at once, not only in their sum.

A placement that balances the sum alone fits none of its windows. Levelling swaps replicas under all windows together; for several domains it also starts
from replica counts made for weighed sums of them, and the weights follow the worst domain, layer by layer.

Shapes: D domains, W windows, L layers, E experts, G GPUs.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from planner.cost import Windows
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem
from planner.solvers.kernels.arrays import protected, spread_nodes
from planner.solvers.kernels.connect import connect
from planner.solvers.kernels.level import Limits, level
from planner.solvers.kernels.packing import Loads, in_order, peaks
from planner.solvers.registry import find_method

ROUNDS = 4  # of weights that follow the worst domain
STEP = 4.0  # how sharply they follow: the power of a domain's peak beside the mean of all
SCALE = 1e9  # weighed loads are counts again

Score = Callable[[Placement], Loads]


def levelled(
    problem: Problem,
    windows: Windows,
    placement: Placement,
    score: Score,
    more: Callable[[], bool] = lambda: True,
) -> Placement:
    """No layer scores worse than in `placement`. Nothing is drawn. `more` is asked before each candidate whether to go on."""
    if (len(windows.loads) == 1 and problem.speed_G is None) or not more():
        return placement
    return best_rows(placement, _candidates(problem, windows, placement), score, more)


def best_rows(
    placement: Placement,
    candidates: Iterable[Placement],
    score: Score,
    more: Callable[[], bool] = lambda: True,
) -> Placement:
    """Every layer's best row among the placement and the candidates; a tie goes to the earlier. `more` is asked after each candidate."""
    best_LP, best_L = placement.expert_LP.copy(), score(placement)
    for candidate in candidates:
        score_L = score(candidate)
        better_L = score_L < best_L
        best_LP[better_L], best_L[better_L] = candidate.expert_LP[better_L], score_L[better_L]
        if not more():
            break
    return Placement(best_LP, placement.layer_ids, placement.gpus)


def joined(problem: Problem, placement: Placement) -> Placement:
    """The placement with shared experts joining all GPUs of every layer, and balanced again where that took swaps."""
    node_G = problem.node_G if problem.survive is not None and problem.survive.node else None
    expert_LP = connect(
        problem.shares_LE, protected(problem, placement.expert_LP), problem.gpus, problem.speed_G, node_G
    )
    changed = np.flatnonzero((expert_LP != placement.expert_LP).any(axis=1))
    if len(changed):
        limits = Limits(
            problem.gpus, problem.speed_G, None if node_G is None else spread_nodes(problem), joined=True
        )
        expert_LP[changed] = level(problem.shares_LE[None, changed], expert_LP[changed], limits)
    return Placement(
        in_order(protected(problem, expert_LP), problem.gpus), placement.layer_ids, placement.gpus
    )


def _candidates(problem: Problem, windows: Windows, placement: Placement) -> Iterator[Placement]:
    """Levelled over windows; with several domains also over these, from the placement and from weighed sums of the domains' loads."""
    share_WLE = np.array([load.shares_LE for load in windows.loads])
    yield _level(problem, share_WLE, placement)
    share_DLE = np.array(
        [
            load.shares_LE
            for name in problem.load.domain_names
            if (load := problem.load.of_domain(name)) is not None
        ]
    )
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
    return Placement(
        in_order(protected(problem, level(share_DLE, placement.expert_LP, limits)), problem.gpus),
        placement.layer_ids,
        placement.gpus,
    )
