"""Re-splittability: whether any GPU of a layer can pass load on to any other, and what weights reach.

Load is passed on through experts that two GPUs both hold; the weights are those on replicas. A balancer that
weighs replicas anew for each batch (LPLB, SGLang's `lp`) can only shift load between GPUs that share an
expert. Where the graph of GPUs that share experts is connected, a hot GPU can hand load to all others, step
by step; every GPU then holds at least one replicated expert.

Shapes: L layers, P slots, G GPUs, W windows.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.cost.over_windows import windows_of
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem, islands_L
from planner.replica import Shares, best_split_1P, steady_split_1P

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class BestSplit:
    """max/mean with weights on the replicas, summed over windows and layers with a signal;
    `even_max_over_mean` is the same without weights.
    """

    windows: int
    even_max_over_mean: float
    static_max_over_mean: float  # weights that are best on average over the fitted windows, kept
    # weights that are best for each window, known beforehand: no engine can do better with this placement
    resplit_max_over_mean: float
    islands_L: tuple[int, ...]


def best_split(problem: Problem, placement: Placement, judged_on: LoadProfile) -> BestSplit:
    """What the placement could reach on `judged_on` if its replicas were weighted: once, on the problem's
    load, or anew for each of a few windows.
    """
    gpus = problem.gpus
    fitted, windows = (windows_of(problem, load).loads for load in (problem.load, judged_on))
    total, even, static, resplit = 0.0, 0.0, 0.0, 0.0
    replicas_LE = placement.replicas_LE(problem.model.experts)
    for row, expert_P in enumerate(placement.expert_LP):
        fitted_P = steady_split_1P(expert_P, np.array([load.shares_LE[row] for load in fitted]), gpus)[0]
        for load in windows:
            share_E = load.shares_LE[row]
            if not load.total_LE[row].any():
                continue
            total += problem.fair_share
            even += _peak(problem, share_E[expert_P] / replicas_LE[row][expert_P])
            static += _peak(problem, share_E[expert_P] * fitted_P)
            resplit += _peak(problem, share_E[expert_P] * best_split_1P(expert_P, share_E, gpus)[0])
    islands = tuple(islands_L(placement.expert_LP, gpus).tolist())
    return BestSplit(len(windows), even / total, static / total, resplit / total, islands)


def _peak(problem: Problem, load_P: Shares) -> float:
    load_G = load_P.reshape(problem.gpus, -1).sum(axis=1)
    return float((load_G if problem.speed_G is None else load_G / problem.speed_G).max())
