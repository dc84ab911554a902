"""Co-activation, judged: how many other places (nodes) a token of a trace has to reach.

It follows the replica rule of the engine.

Shapes: S ways to choose replicas (source ranks, or rows of a batch), G GPUs, N places, E experts, P slots, T
tokens, K = top_k, L layers.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem
from planner.replica import CHOICES, find_rule

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# rules that pick by the token's row in the batch alone: all experts of a token pick alike
BY_ROW = ("hashed", "row-index")

Way = tuple[Floats, Ints, float]  # share_P, the ranks that share slots so, their share of the tokens


def remote_places_L(
    problem: Problem, placement: Placement, load: LoadProfile | None = None, place_G: Ints | None = None
) -> Floats:
    """Expected places other than its own that a token's experts are served at, per layer, over all tokens of
    the trace and all source ranks.

    Places are nodes, or those of `place_G`. Layers that the trace lacks are NaN. BadInput where the load has
    no trace.
    """
    load = load or problem.load
    if load.trace is None:
        raise BadInput(
            f"{load.source}: places per token are counted over a trace, and this load has counts alone"
        )
    place_G = problem.node_G if place_G is None else place_G
    found_L = np.full(len(placement.layer_ids), np.nan)
    shares = _shares(problem, placement, load)
    for row, (weighted, experts_TK) in enumerate(zip(shares, load.trace.experts_LTK, strict=True)):
        if experts_TK[0, 0] >= 0:
            found_L[row] = sum(
                weight * _remote(share_P, sources_G, placement.expert_LP[row], place_G, experts_TK)
                for share_P, sources_G, weight in weighted
            )
    return found_L


def _shares(problem: Problem, placement: Placement, load: LoadProfile) -> Iterator[list[Way]]:
    """For every layer the distinct ways to share slots."""
    gpus = problem.gpus
    if problem.replica_rule in BY_ROW:
        for expert_P in placement.expert_LP:
            yield _by_row(problem, expert_P)
        return
    for share_SP in find_rule(problem.replica_rule)(placement, problem.situation(load)):
        if len(share_SP) == 1:
            yield [(share_SP[0], np.arange(gpus), 1.0)]
            continue
        distinct_DP, which_G = np.unique(share_SP, axis=0, return_inverse=True)
        members = [np.flatnonzero(which_G.ravel() == one) for one in range(len(distinct_DP))]
        yield [
            (share_P, ranks_G, len(ranks_G) / gpus)
            for share_P, ranks_G in zip(distinct_DP, members, strict=True)
        ]


def _by_row(problem: Problem, expert_P: Ints) -> list[Way]:
    """Each row of a batch has one slot for every expert, the same for all experts with as many replicas; rows
    that pick alike are taken together.
    """
    gpus, choose = problem.gpus, CHOICES[problem.replica_rule]
    groups = np.arange(gpus).reshape(-1, 1 if problem.replica_rule == "row-index" else gpus)
    all_RE = np.tile(np.arange(problem.model.experts), (problem.workload.tokens_per_rank, 1))
    found: list[Way] = []
    for ranks_G in groups:  # ranks that choose alike
        slots_DE, count_D = np.unique(
            choose(all_RE, expert_P, int(ranks_G[0]), gpus), axis=0, return_counts=True
        )
        for slots_E, count in zip(slots_DE, count_D, strict=True):
            share_P = np.zeros(len(expert_P))
            share_P[slots_E] = 1.0
            found.append((share_P, ranks_G, count / len(all_RE) / len(groups)))
    return found


def _remote(
    share_P: Floats, sources_G: Ints, expert_P: Ints, place_G: Ints, experts_TK: npt.NDArray[np.integer]
) -> float:
    """Places other than the source's that a token reaches, mean over tokens and these source ranks."""
    places = int(place_G.max()) + 1
    to_place_EN = np.zeros((int(expert_P.max()) + 1, places))
    np.add.at(to_place_EN, (expert_P, np.repeat(place_G, len(expert_P) // len(place_G))), share_P)
    miss_EN = 1.0 - np.minimum(to_place_EN, 1.0)
    miss_TN = miss_EN[experts_TK[:, 0]]
    for k in range(1, experts_TK.shape[1]):
        miss_TN *= miss_EN[experts_TK[:, k]]
    hit_N = 1.0 - miss_TN.mean(axis=0)
    return float(hit_N.sum() - hit_N[place_G[sources_G]].mean())
