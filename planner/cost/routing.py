"""How the tokens of a layer reach slots: assignments from sources, and what a token's top-k holds.

Shapes: S source ranks (1 where all behave alike, else G), P slots, G GPUs, E experts, T traced tokens, K =
top_k.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.problem import Problem

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Routing:
    """One layer: the load's shares, the replica rule's, the placement's row, and traced tokens if any."""

    share_E: Floats
    share_SP: Floats
    expert_P: Ints
    experts_TK: npt.NDArray[np.int32] | None = None


def assignments_SP(problem: Problem, routing: Routing) -> Floats:
    """Expected assignments per step that each source sends to each slot; S as in `share_SP`."""
    sent = problem.workload.tokens_per_rank * problem.model.top_k
    return sent * routing.share_E[routing.expert_P] * routing.share_SP


def inclusion_E(share_E: Floats, top_k: int) -> Floats:
    """Chance that a token's top-k holds each expert, from its share of assignments.

    That is k · share, capped at 1, the rest scaled to sum to k.
    """
    chance_E = np.minimum(top_k * share_E, 1.0)
    for _ in range(32):
        free = chance_E < 1.0
        missing = top_k - chance_E.sum()
        if missing <= 1e-9 or not chance_E[free].sum():
            break
        chance_E[free] = np.minimum(chance_E[free] * (1 + missing / chance_E[free].sum()), 1.0)
    return chance_E
