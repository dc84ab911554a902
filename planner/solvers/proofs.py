"""Proofs: what a budget can show of a plan, layer by layer.

CP-SAT raises the bounds of the worst layers; where all placements can be tried, all are.

Shapes: L layers, W windows, N placements, P slots, G GPUs.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.bounds import TimeBound, load_bound, time_bound
from planner.cost import Floats, compute_rates
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem, violations
from planner.replica import ACROSS_LAYERS
from planner.solvers.best import best_rows
from planner.solvers.enumeration import every_placement
from planner.solvers.methods.cpsat.exact import solve_exact
from planner.solvers.methods.cpsat.fractional import solve_fractional_bound
from planner.solvers.methods.cpsat.integers import Answer, Effort
from planner.solvers.methods.cpsat.rows import first_alike, furthest_first, whole_loads_LE, with_seconds

Ints = npt.NDArray[np.int64]

DETERMINISTIC_SECONDS = 60.0  # of CP-SAT over all layers, where no budget was given
MOST_CELLS = 4_000  # experts x GPUs of a layer that CP-SAT is given whole
MOST_PLACEMENTS = 200_000  # of one layer, up to symmetry, that are all tried
PRICES = 200_000  # of one layer in one window each, where no budget was given: about a minute
CLOSE = 1e-9  # to its bound a layer is at it


@dataclass(frozen=True, eq=False)
class Proof:
    """The placement, better where a better one came up.

    A bound on the busiest GPU's share of each layer's load; layers whose row no other can beat.
    """

    placement: Placement
    load_share_L: Floats
    optimal_L: npt.NDArray[np.bool_]
    stopped: str = ""  # what is to be said where Ctrl-C cut the search short


@dataclass(frozen=True, eq=False)
class Judge:
    """The objective: `score` of a placement, a law over the seconds in each of `windows`.

    `law` makes one number of seconds_WN that the objective is no less than, and that grows with each of them:
    the objective itself where it is a mean or a maximum, the mean where a deviation is added.
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
    half = whole = None
    if budget_seconds is not None:
        start = time.monotonic()
        half, whole = start + budget_seconds / 2, start + budget_seconds
    balanced = balance_proof(problem, proof, judge, stop=half, seed=seed)
    if violations(problem, balanced.placement):  # of a rule that CP-SAT was not told of
        balanced = replace(balanced, placement=proof.placement)
    proved = objective_proof(problem, balanced, judge, stop=whole)
    return balanced if violations(problem, proved.placement) else proved


def balance_proof(
    problem: Problem, proof: Proof, judge: Judge, *, stop: float | None = None, seed: int = 0
) -> Proof:
    """Bounds raised by CP-SAT where a layer is small enough.

    Under other rules than `even` any split over replicas is allowed for: weaker, and valid.
    """
    load_LE = whole_loads_LE(problem)
    first_L = first_alike(load_LE)  # layers of equal load are proven once
    peak_L, bound_L = _peaks_L(problem, load_LE, proof.placement), _bounds_L(problem, load_LE, proof)
    small = problem.model.experts * problem.gpus <= MOST_CELLS and problem.speed_G is None
    rows = furthest_first(peak_L, bound_L, first_L, CLOSE) if small else []
    expert_LP = proof.placement.expert_LP.copy()
    for row, left in with_seconds(rows, stop):
        counted_seconds = DETERMINISTIC_SECONDS / len(rows) if left is None else DETERMINISTIC_SECONDS
        answer = _answer(problem, load_LE[row], expert_LP[row], Effort(counted_seconds, left, seed))
        if problem.replica_rule == "even":
            expert_LP[row] = np.sort(answer.expert_P.reshape(problem.gpus, -1), axis=1).ravel()
        bound_L[row] = max(bound_L[row], answer.bound)
    expert_LP = np.where((peak_L > bound_L * (1 + CLOSE))[:, None], expert_LP[first_L], expert_LP)
    bound_L = np.maximum(bound_L, bound_L[first_L])
    kept = best_rows(proof.placement, [replace(proof.placement, expert_LP=expert_LP)], judge.score)
    return replace(proof, placement=kept, load_share_L=bound_L / load_LE.sum(axis=1))


def _peaks_L(problem: Problem, load_LE: Floats, placement: Placement) -> Floats:
    each_LE = load_LE / placement.replicas_LE(problem.model.experts)
    value_LP = np.take_along_axis(each_LE, placement.expert_LP, axis=1)
    return np.asarray(value_LP.reshape(len(load_LE), problem.gpus, -1).sum(axis=2).max(axis=1))


def _bounds_L(problem: Problem, load_LE: Floats, proof: Proof) -> Floats:
    """The best known before CP-SAT, in the unit of the loads."""
    even, speed_G = problem.replica_rule == "even", problem.speed_G
    bound = load_bound(load_LE, problem.gpus, problem.slots_per_gpu, even=even, speed_G=speed_G)
    return np.asarray(np.maximum(bound.load_L, proof.load_share_L * load_LE.sum(axis=1)))


def _answer(problem: Problem, load_E: Floats, start_P: Ints, effort: Effort) -> Answer:
    gpus, slots = problem.gpus, problem.slots_per_gpu
    if problem.replica_rule == "even":
        return solve_exact(load_E, gpus, slots, start_P=start_P, effort=effort)
    return solve_fractional_bound(load_E, gpus, slots, effort=effort)


def objective_proof(problem: Problem, proof: Proof, judge: Judge, *, stop: float | None = None) -> Proof:
    """The best of all placements of each layer under the whole objective, where they are few enough."""
    alone = problem.replica_rule not in ACROSS_LAYERS  # else no layer can be tried alone
    rows_NP = every_placement(problem, MOST_PLACEMENTS) if alone else None
    if rows_NP is None:
        return proof
    least_LN = least_seconds_LN(problem, rows_NP, judge)
    order_LN = np.argsort(least_LN, axis=1, kind="stable")
    best_LP, best_L = proof.placement.expert_LP.copy(), judge.score(proof.placement)
    layers = np.arange(len(best_L))
    most = PRICES // (len(judge.windows) * len(layers)) if stop is None else len(rows_NP)
    optimal_L = np.zeros(len(best_L), dtype=bool)
    for tried in range(len(rows_NP)):
        # Nor can any after it be better
        optimal_L |= least_LN[layers, order_LN[:, tried]] >= best_L * (1 - CLOSE)
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
    """For each layer and placement what its objective is at least.

    From its busiest GPU in each window, where shares are even.
    """
    windows = [(time_bound(problem, load), load) for load in judge.windows]
    busiest_N = _busiest_seconds(problem, rows_NP)

    def least_N(bound: TimeBound, load: LoadProfile, layer: int) -> Floats:
        compute_N = np.full(len(rows_NP), bound.compute_seconds_L[layer])
        if problem.replica_rule == "even":
            compute_N = np.maximum(compute_N, busiest_N(load.shares_LE[layer]))
        return np.asarray(bound.dispatch_seconds_L[layer] + compute_N + bound.combine_seconds_L[layer])

    def law_N(layer: int) -> Floats:
        return judge.law(np.array([least_N(bound, load, layer) for bound, load in windows]))

    return np.array([law_N(layer) for layer in range(len(problem.model.placed_layer_ids))])


def _busiest_seconds(problem: Problem, rows_NP: Ints) -> Callable[[Floats], Floats]:
    """From a layer's shares of load to the compute of its busiest GPU in each placement, shares even."""
    replicas_NE = (rows_NP[:, :, None] == np.arange(problem.model.experts)).sum(axis=1)
    replicas_NP = np.take_along_axis(replicas_NE, rows_NP, axis=1)
    sent_by_all = problem.workload.tokens_per_rank * problem.gpus * problem.model.top_k
    rates = compute_rates(problem)
    idle, each_G = float(rates.fixed_G.min()), rates.operations_G + rates.row_G

    def busiest_N(share_E: Floats) -> Floats:
        load_NP = share_E[rows_NP] / replicas_NP * sent_by_all
        load_NG = load_NP.reshape(len(rows_NP), problem.gpus, -1).sum(axis=2)
        return np.asarray(idle + (load_NG * each_G).max(axis=1))

    return busiest_N
