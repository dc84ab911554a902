"""Robust search: placements for a load whose domains are weighed, layer by layer, until the worst domain is as good as it gets.

Shapes: D domains, L layers, E experts, G GPUs.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem
from planner.solve import find_method
from planner.solve.arrays import spread_nodes
from planner.solve.level import Limits, level
from planner.solve.packing import Loads, in_order, peaks

ROUNDS = 4  # of weights that follow the worst domain
STEP = 4.0  # how sharply they follow: the power of a domain's peak beside the mean of all
SCALE = 1e9  # weighed loads are counts again

Score = Callable[[Placement], Loads]


def robust(problem: Problem, placement: Placement, score: Score, budget_seconds: float | None = None) -> Placement:
    """No layer scores worse than in `placement`. Nothing is drawn; `budget_seconds` is a wall-clock limit, and what it cuts short is not reproducible."""
    stop = None if budget_seconds is None else time.monotonic() + budget_seconds
    best_LP, best_L = placement.expert_LP.copy(), score(placement)
    for candidate in _candidates(problem, placement):
        score_L = score(candidate)
        better_L = score_L < best_L
        best_LP[better_L], best_L[better_L] = candidate.expert_LP[better_L], score_L[better_L]
        if stop is not None and time.monotonic() >= stop:
            break
    return Placement(best_LP, placement.layer_ids, placement.gpus)


def _candidates(problem: Problem, placement: Placement) -> Iterator[Placement]:
    """The placement levelled; then one for equal weights, one for each domain alone, and some for weights that follow the worst domain."""
    share_DLE = np.array([load.shares_LE for name in problem.load.domain_names if (load := problem.load.of_domain(name)) is not None])
    domains, layers, _ = share_DLE.shape
    yield _levelled(problem, share_DLE, placement)
    for domain in range(domains):
        yield _for_weights(problem, share_DLE, np.eye(domains)[domain][:, None].repeat(layers, axis=1))
    weight_DL = np.full((domains, layers), 1 / domains)
    for _ in range(ROUNDS):
        found = _for_weights(problem, share_DLE, weight_DL)
        yield found
        peak_DL = np.array([peaks(share_LE, found.expert_LP, problem.gpus) for share_LE in share_DLE])
        weight_DL *= (peak_DL / peak_DL.mean(axis=0)) ** STEP
        weight_DL /= weight_DL.sum(axis=0)


def _for_weights(problem: Problem, share_DLE: Loads, weight_DL: Loads) -> Placement:
    """Replica counts and packing for the weighed sum, then swaps under all domains at once."""
    counts_LE = np.rint(SCALE * (weight_DL[:, :, None] * share_DLE).sum(axis=0)).astype(np.int64)
    weighed = replace(problem, load=LoadProfile(counts_LE[None], problem.load.layer_ids, problem.load.source))
    return _levelled(problem, share_DLE, find_method("refine")(weighed))


def _levelled(problem: Problem, share_DLE: Loads, placement: Placement) -> Placement:
    limits = Limits(problem.gpus, problem.speed_G, spread_nodes(problem))
    return Placement(in_order(level(share_DLE, placement.expert_LP, limits), problem.gpus), placement.layer_ids, placement.gpus)
