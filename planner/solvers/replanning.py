"""A new plan for load that has shifted: each move is spent where it saves most of the predicted step.

So it is not far from the plan that runs.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.load import LoadProfile, merge_windows
from planner.placement import Placement
from planner.plan import Resize, aligned, moves_L
from planner.problem import Problem
from planner.solvers.best import Score
from planner.solvers.kernels.arrays import spread_nodes
from planner.solvers.kernels.relabel import relabelled
from planner.solvers.kernels.warm import best_within, candidates

Floats = npt.NDArray[np.float64]

SHARES = (1.0, 0.5, 0.25, 0.1)  # of the moves allowed, that warm re-plans are given
LARGEST_WARM_SHARE = 0.25  # of all slots: with more moves, planning from nothing is as near
ASSUMED_DRIFT = 0.1  # relative change of an expert's load from window to window, where one window shows none
DRIFT_WINDOWS = 8  # into which the fitted load is merged before windows are compared
LEAST_GAIN = 1e-4  # of a layer's time: less is worth no move


@dataclass(frozen=True, eq=False)
class CurrentPlacement:
    """The placement that runs, where it was read, and how many moves are allowed in all layers.

    A move is a slot that gets an expert that its GPU does not hold; None: any number. After a change of GPUs
    the placement is what the ranks hold, refilled: those moves are needed, and `most_moves` are others.
    """

    placement: Placement
    source: str
    most_moves: int | None = None
    resize: Resize | None = None
    needed_moves: int = 0


def replanned_within(
    problem: Problem, current: CurrentPlacement, found: Placement, score: Score
) -> Placement:
    """The best of the previous placement, warm re-plans and `found` (relabelled), within the moves allowed.

    Layer by layer by `score`; it may keep all. Experts that stay on their GPU keep their slot. No layer
    scores worse than before.
    """
    old = current.placement
    most = old.expert_LP.size if current.most_moves is None else current.most_moves
    allowed = int(min(most, LARGEST_WARM_SHARE * old.expert_LP.size))
    drift_L, node_G = drift_of(problem.load), spread_nodes(problem)
    warm = candidates(problem.shares_LE, old.expert_LP, problem.gpus, drift_L, allowed, node_G)
    warm_LPs = [warm.within(int(allowed * share)) for share in SHARES]
    offers = [relabelled(problem, old, found), *(replace(old, expert_LP=warm_LP) for warm_LP in warm_LPs)]
    return chosen(old, [old, *(aligned(old, offer) for offer in offers)], score, most)


def chosen(old: Placement, offers: list[Placement], score: Score, most_moves: int) -> Placement:
    """Each layer's row from one of the offers, the first of which must fit the moves allowed."""
    moves_KL = np.array([moves_L(old, offer) for offer in offers])
    pick_L = best_within(np.array([score(offer) for offer in offers]), moves_KL, most_moves, LEAST_GAIN)
    expert_LP = np.array([offers[pick].expert_LP[row] for row, pick in enumerate(pick_L.tolist())])
    return replace(old, expert_LP=expert_LP)


def drift_of(load: LoadProfile) -> Floats:
    """drift_L: how much experts' shares change from window to window; assumed where there is one window.

    Root mean square of the change, over that of the shares.
    """
    tokens_WLE = merge_windows(load, DRIFT_WINDOWS).tokens_WLE.astype(np.float64)
    if len(tokens_WLE) < 2:
        return np.full(tokens_WLE.shape[1], ASSUMED_DRIFT)
    share_WLE = tokens_WLE / np.maximum(tokens_WLE.sum(axis=2, keepdims=True), 1)
    change_L = (np.diff(share_WLE, axis=0) ** 2).mean(axis=(0, 2))
    drift_L: Floats = np.sqrt(change_L / np.maximum((share_WLE**2).mean(axis=(0, 2)), np.finfo(float).tiny))
    return drift_L
