"""Proofs: what a budget can show of a plan, layer by layer. CP-SAT raises the bounds of the worst layers; where all placements can be tried, all are.

Shapes: L layers, W windows, N placements, P slots, G GPUs.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.bounds import TimeBound, load_bound, seconds_each_G, time_bound
from planner.cost import Floats, compute_seconds_G
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem, violations
from planner.solvers.enumeration import every_placement
from planner.solvers.methods.cpsat import first_alike
from planner.solvers.methods.cpsat.exact import solve_exact
from planner.solvers.methods.cpsat.fractional import solve_fractional_bound
from planner.solvers.methods.cpsat.integers import Effort

Ints = npt.NDArray[np.int64]

DETERMINISTIC_SECONDS = 60.0  # of CP-SAT over all layers, where no budget was given
MOST_CELLS = 4_000  # experts x GPUs of a layer that CP-SAT is given whole
MOST_PLACEMENTS = 200_000  # of one layer, up to symmetry, that are all tried
PRICES = 200_000  # of one layer in one window each, where no budget was given: about a minute
CLOSE = 1e-9  # to its bound a layer is at it
SEPARATE = (
    "nearest-static",
)  # rules by which a layer's price depends on the rows of other layers: no layer can be tried alone


@dataclass(frozen=True, eq=False)
class Proof:
    """The placement, better where a better one came up; a bound on the busiest GPU's share of each layer's load; layers whose row no other can beat."""

    placement: Placement
    load_share_L: Floats
    optimal_L: npt.NDArray[np.bool_]
    stopped: str = ""  # what is to be said where Ctrl-C cut the search short


@dataclass(frozen=True, eq=False)
class Judge:
    """The objective: `score` of a placement, a law over the seconds in each of `windows`.

    `law` makes one number of seconds_WN that the objective is no less than, and that grows with each of them: the objective itself where it is a mean
    or a maximum, the mean where a deviation is added.
    """

    score: Callable[[Placement], Floats]  # seconds_L, lower is better
    windows: Sequence[LoadProfile]
    law: Callable[[Floats], Floats]


def prove(
    problem: Problem, proof: Proof, judge: Judge, *, seed: int = 0, budget_seconds: float | None = None
) -> Proof:
    """Balance first, the layers furthest from their bound before others; then the whole objective.

    Without a budget the effort is counted, not timed, and the answer is reproducible.
    """
    start = time.monotonic()
    half, whole = (
        (None, None) if budget_seconds is None else (start + budget_seconds / 2, start + budget_seconds)
    )
    balanced = balance_proof(problem, proof, judge, stop=half, seed=seed)
    if violations(problem, balanced.placement):  # of a rule that CP-SAT was not told of
        balanced = replace(balanced, placement=proof.placement)
    proved = objective_proof(problem, balanced, judge, stop=whole)
    return balanced if violations(problem, proved.placement) else proved


def balance_proof(
    problem: Problem, proof: Proof, judge: Judge, *, stop: float | None = None, seed: int = 0
) -> Proof:
    """Bounds raised by CP-SAT where a layer is small enough. Under other rules than `even` any split over replicas is allowed for: weaker, and valid."""
    even = problem.replica_rule == "even"
    load_LE = np.where(problem.load.total_LE.any(axis=1, keepdims=True), problem.load.total_LE, 1).astype(
        np.float64
    )  # whole, for exactness
    total_L, gpus, slots = load_LE.sum(axis=1), problem.gpus, problem.slots_per_gpu
    bound_L = np.maximum(
        load_bound(load_LE, gpus, slots, even=even, speed_G=problem.speed_G).load_L,
        proof.load_share_L * total_L,
    )
    replicas_LE = proof.placement.replicas_LE(problem.model.experts)
    peak_L = (
        np.take_along_axis(load_LE / replicas_LE, proof.placement.expert_LP, axis=1)
        .reshape(len(load_LE), gpus, -1)
        .sum(axis=2)
        .max(axis=1)
    )
    rows = (
        np.flatnonzero(peak_L > bound_L * (1 + CLOSE))
        if problem.model.experts * gpus <= MOST_CELLS and problem.speed_G is None
        else np.array([], dtype=np.int64)
    )
    first_L = first_alike(load_LE)  # layers of equal load are proven once
    rows = rows[first_L[rows] == rows]
    rows = rows[np.argsort(-(peak_L / bound_L)[rows], kind="stable")]
    expert_LP = proof.placement.expert_LP.copy()
    for done, row in enumerate(rows.tolist()):
        left = None if stop is None else (stop - time.monotonic()) / (len(rows) - done)
        if left is not None and left <= 0:
            break
        effort = Effort(
            DETERMINISTIC_SECONDS / len(rows) if left is None else DETERMINISTIC_SECONDS, left, seed
        )
        if even:
            answer = solve_exact(load_LE[row], gpus, slots, start_P=expert_LP[row], effort=effort)
            expert_LP[row] = np.sort(answer.expert_P.reshape(gpus, -1), axis=1).ravel()
        else:
            answer = solve_fractional_bound(load_LE[row], gpus, slots, effort=effort)
        bound_L[row] = max(bound_L[row], answer.bound)
    expert_LP = np.where((peak_L > bound_L * (1 + CLOSE))[:, None], expert_LP[first_L], expert_LP)
    bound_L = np.maximum(bound_L, bound_L[first_L])
    offered = replace(proof.placement, expert_LP=expert_LP)
    better_L = judge.score(offered) < judge.score(proof.placement)
    kept = replace(
        proof.placement, expert_LP=np.where(better_L[:, None], expert_LP, proof.placement.expert_LP)
    )
    return replace(proof, placement=kept, load_share_L=bound_L / total_L)


def objective_proof(problem: Problem, proof: Proof, judge: Judge, *, stop: float | None = None) -> Proof:
    """The best of all placements of each layer under the whole objective, where there are few enough of them."""
    rows_NP = None if problem.replica_rule in SEPARATE else every_placement(problem, MOST_PLACEMENTS)
    if rows_NP is None:
        return proof
    least_LN = least_seconds_LN(problem, rows_NP, judge)
    order_LN = np.argsort(least_LN, axis=1, kind="stable")
    best_LP, best_L = proof.placement.expert_LP.copy(), judge.score(proof.placement)
    layers = np.arange(len(best_L))
    most = PRICES // (len(judge.windows) * len(layers)) if stop is None else len(rows_NP)
    optimal_L = np.zeros(len(best_L), dtype=bool)
    for tried in range(len(rows_NP)):
        optimal_L |= least_LN[layers, order_LN[:, tried]] >= best_L * (
            1 - CLOSE
        )  # nor can any after it be better
        if optimal_L.all() or tried >= most or (stop is not None and time.monotonic() > stop):
            break
        offered_LP = rows_NP[order_LN[:, tried]]
        seconds_L = judge.score(replace(proof.placement, expert_LP=offered_LP))
        better_L = (seconds_L < best_L * (1 - CLOSE)) & ~optimal_L
        best_LP[better_L], best_L[better_L] = offered_LP[better_L], seconds_L[better_L]
    else:
        optimal_L[:] = True
    return replace(proof, placement=replace(proof.placement, expert_LP=best_LP), optimal_L=optimal_L)


def least_seconds_LN(problem: Problem, rows_NP: Ints, judge: Judge) -> Floats:
    """For each layer and placement what its objective is at least; from its busiest GPU in each window, where shares are even."""
    bounds = [time_bound(problem, load) for load in judge.windows]
    replicas_NE = (rows_NP[:, :, None] == np.arange(problem.model.experts)).sum(axis=1)
    replicas_NP = np.take_along_axis(replicas_NE, rows_NP, axis=1)
    sent_by_all = problem.workload.tokens_per_rank * problem.gpus * problem.model.top_k
    idle = float(compute_seconds_G(problem, np.zeros(problem.gpus), np.zeros(problem.gpus)).min())
    each_G = seconds_each_G(problem, 1.0, 0.0)

    def least_N(bound: TimeBound, load: LoadProfile, layer: int) -> Floats:
        compute_N = np.full(len(rows_NP), bound.compute_seconds_L[layer])
        if problem.replica_rule == "even":
            load_NP = load.shares_LE[layer][rows_NP] / replicas_NP * sent_by_all
            compute_N = np.maximum(
                compute_N,
                idle + (load_NP.reshape(len(rows_NP), problem.gpus, -1).sum(axis=2) * each_G).max(axis=1),
            )
        return np.asarray(bound.dispatch_seconds_L[layer] + compute_N + bound.combine_seconds_L[layer])

    layers = range(len(problem.model.placed_layer_ids))
    return np.array(
        [
            judge.law(
                np.array(
                    [least_N(bound, load, layer) for bound, load in zip(bounds, judge.windows, strict=True)]
                )
            )
            for layer in layers
        ]
    )
