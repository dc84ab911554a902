"""A new plan for load that has shifted, not far from the one that runs: each move is spent where it saves most of the predicted step."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.load import LoadProfile, merge_windows
from planner.placement import Placement
from planner.plan import aligned, moves_L
from planner.problem import Problem
from planner.solvers.kernels.arrays import spread_nodes
from planner.solvers.kernels.relabel import relabelled
from planner.solvers.kernels.warm import best_within, candidates

Floats = npt.NDArray[np.float64]
Score = Callable[[Placement], Floats]  # one number a layer, lower is better

SHARES = (1.0, 0.5, 0.25, 0.1)  # of the moves allowed, that warm re-plans are given
LARGEST_WARM_SHARE = 0.25  # of all slots: with more moves, planning from nothing is as near
ASSUMED_DRIFT = 0.1  # relative change of an expert's load from window to window, where one window shows none
DRIFT_WINDOWS = 8  # into which the fitted load is merged before windows are compared
LEAST_GAIN = 1e-4  # of a layer's time: less is worth no move


@dataclass(frozen=True, eq=False)
class CurrentPlacement:
    """The placement that runs, where it was read, and how many slots in all layers may get an expert that their GPU does not hold (None: any)."""

    placement: Placement
    source: str
    most_moves: int | None = None


def replanned_within(
    problem: Problem, current: CurrentPlacement, found: Placement, score: Score
) -> Placement:
    """The best of the previous placement, warm re-plans and `found` (relabelled), layer by layer by `score`, within the moves allowed. May keep all.

    Experts that stay on their GPU keep their slot. No layer scores worse than before.
    """
    old, most = (
        current.placement,
        current.most_moves if current.most_moves is not None else current.placement.expert_LP.size,
    )
    offers = [old, aligned(old, relabelled(problem, old, found))]
    allowed = int(min(most, LARGEST_WARM_SHARE * old.expert_LP.size))
    warm = candidates(
        problem.shares_LE, old.expert_LP, problem.gpus, drift_of(problem.load), allowed, spread_nodes(problem)
    )
    offers += [
        aligned(old, Placement(warm.within(int(allowed * share)), old.layer_ids, old.gpus))
        for share in SHARES
    ]
    return chosen(old, offers, score, most)


def chosen(old: Placement, offers: list[Placement], score: Score, most_moves: int) -> Placement:
    """Each layer's row from one of the offers, the first of which must fit the moves allowed."""
    moves_KL = np.array([moves_L(old, offer) for offer in offers])
    pick_L = best_within(np.array([score(offer) for offer in offers]), moves_KL, most_moves, LEAST_GAIN)
    expert_LP = np.array([offers[pick].expert_LP[row] for row, pick in enumerate(pick_L.tolist())])
    return Placement(expert_LP, old.layer_ids, old.gpus)


def drift_of(load: LoadProfile) -> Floats:
    """drift_L: root mean square of the change of experts' shares from window to window, over that of the shares. Assumed where there is one window."""
    tokens_WLE = merge_windows(load, DRIFT_WINDOWS).tokens_WLE.astype(np.float64)
    if len(tokens_WLE) < 2:
        return np.full(tokens_WLE.shape[1], ASSUMED_DRIFT)
    share_WLE = tokens_WLE / np.maximum(tokens_WLE.sum(axis=2, keepdims=True), 1)
    change_L = (np.diff(share_WLE, axis=0) ** 2).mean(axis=(0, 2))
    drift_L: Floats = np.sqrt(change_L / np.maximum((share_WLE**2).mean(axis=(0, 2)), np.finfo(float).tiny))
    return drift_L
