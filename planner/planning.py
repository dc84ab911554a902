"""From what a person asked to a judged plan: pose the problem, run a method, compare with doing nothing."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.cost import cost
from planner.engines import default_placement
from planner.errors import BadInput, Infeasible
from planner.load import LoadProfile
from planner.load_split import split_notes
from planner.model import ModelSpec
from planner.moving import aligned, plan_moves
from planner.objective import Objective
from planner.placement import Placement
from planner.plan import PREVIOUS, Origin, Plan, judged
from planner.problem import Problem, Workload, check_slots
from planner.proving import Judge, Proof, prove
from planner.replanning import Standing, chosen, restrained
from planner.replica import EXPECTATION, LARGEST_EXACT_TABLE, table_draws
from planner.resplit import island_LG
from planner.score import Windows, objective_seconds_L, windows_of
from planner.shift import best_rows, joined, levelled
from planner.solve import Progress, auto, cpsat, find_method, sparse
from planner.solve.arrays import Solved, spread_nodes
from planner.solve.disperse import disperse
from planner.solve.packing import in_order
from planner.solve.settle import settle
from planner.survival import Survival
from planner.topology import Topology

SETTLED_BY_SEARCH = ("even", "nearest")  # rules that the search follows to the letter
LAYOUTS = ("linear", "round-robin")  # that are asked for as they are
PRICE_OF_DISPERSAL = 0.005  # of a layer's step that may be paid for less work after a loss

Pose = Callable[[int], Problem]


@dataclass(frozen=True)
class Search:
    """How to look for an answer. A budget in seconds makes the answer depend on the machine; without one it does not."""

    method: str = "auto"
    seed: int = 0
    budget_seconds: float | None = None
    progress: Progress | None = None
    prove: bool = False  # spend half of the budget, or a counted effort, on closing the gap to the bounds


def poser(model: ModelSpec, topology: Topology, load: LoadProfile, workload: Workload, **limits: Any) -> Pose:
    """The problem as a function of R, the redundant experts on all GPUs of the topology; Infeasible for an R that does not fit.

    `limits` are the other fields of a Problem: replica_rule, kv_floor_bytes, objective, resplittable.
    """

    def pose(redundant: int) -> Problem:
        return Problem(topology, model, load, workload, check_slots(model, topology.gpu_count, redundant), **limits)

    return pose


def make_plan(pose: Pose, redundant: int, search: Search, origin: Origin, held_out_load: LoadProfile | None = None, standing: Standing | None = None) -> Plan:
    """Solve for R redundant experts, and judge the answer beside the engine's default placement with the same R and with the fewest.

    With `standing`, the answer is a re-plan of the placement that runs, within its limit of moves, judged beside it too.
    """
    problem = pose(redundant)
    if problem.objective.robust:
        if search.method != "auto":
            raise BadInput(f"--robust weighs candidates by the worst domain, which --method {search.method} cannot; use --method auto")
        if len(problem.load.domain_names) < 2:
            raise BadInput("--robust needs at least two domains to weigh; give --load once for each, every file a domain")
    default = default_placement(origin.engine, problem)
    proof = _prove(problem, search)
    placement = proof.placement if standing is None else _replanned(problem, standing, proof.placement)
    placement = _default_drafts(problem, placement, default if standing is None else standing.placement)
    baselines = {"engine default, same R": (problem, default)}
    least = -problem.model.experts % problem.gpus
    if redundant != least:
        # doing nothing survives no loss
        fewest = replace(problem, slots_per_gpu=(problem.model.experts + least) // problem.gpus, resplittable=False, survive=None)
        baselines[f"engine default, R = {least}"] = (fewest, default_placement(origin.engine, fewest))
    if standing is not None:
        baselines[PREVIOUS] = (problem, standing.placement)
    return judged(
        problem,
        placement,
        proven_share_L=proof.load_share_L,
        optimal_L=proof.optimal_L & (placement.expert_LP == proof.placement.expert_LP).all(axis=1),
        held_out_load=held_out_load,
        baselines=baselines,
        origin=replace(
            origin,
            notes=(*origin.notes, *split_notes(problem.load, held_out_load), *_objective_notes(problem, search), *_rule_notes(problem, placement)),
        ),
        moves=None if standing is None else plan_moves(problem, standing.placement, placement, standing.source, standing.most_moves),
    )


def _default_drafts(problem: Problem, placement: Placement, default: Placement) -> Placement:
    """The placement with the default row (or that which runs) in draft layers that a measured load says nothing of: other layers' load is none of theirs."""
    load = problem.load
    if len(load.unmeasured_layer_ids) == len(load.layer_ids):
        return placement
    unknown_L = [layer in problem.model.draft_layer_ids and layer in load.unmeasured_layer_ids for layer in placement.layer_ids]
    return Placement(np.where(np.array(unknown_L)[:, None], default.expert_LP, placement.expert_LP), placement.layer_ids, placement.gpus)


def _objective_notes(problem: Problem, search: Search) -> tuple[str, ...]:
    """Where the objective asked for decides nothing."""
    objective = problem.objective
    if objective.kind == "mean":
        return ()
    if search.method != "auto":
        return (f"the objective {objective.text} is reported, not searched for: method {search.method} only balances; auto compares by the objective",)
    if problem.load.windows == 1:
        return (f"the objective {objective.text} needs several windows to tell them apart; one was fitted, so it is that window's time",)
    return ()


def _rule_notes(problem: Problem, placement: Placement) -> tuple[str, ...]:
    """What the judge could not follow to the letter."""
    if problem.replica_rule != "nearest-static" or table_draws(placement, problem.model) <= LARGEST_EXACT_TABLE:
        return ()
    return ("the engine's dispatch table is too large to reproduce draw by draw: the plan is judged in its expectation, the rule 'nearest'",)


def _prove(problem: Problem, search: Search) -> Proof:
    """The answer of the search with what is proven of it."""
    half = None if search.budget_seconds is None else search.budget_seconds / 2
    solved = _search(problem, replace(search, budget_seconds=half) if search.prove else search)
    holds = problem.replica_rule == "even" and not (problem.survive and problem.survive.node)  # of every placement, not of those that spread alone
    known_L = solved.bound_L if holds else np.zeros_like(solved.bound_L)
    proof = Proof(solved.placement, known_L, np.zeros(len(known_L), dtype=bool))
    if not search.prove:
        return proof
    if search.progress:
        search.progress(0.9, "proving")
    windows = fitted_windows(problem)
    grows = Objective("mean", robust=problem.objective.robust) if problem.objective.kind == "risk" else problem.objective
    law = partial(grows.seconds_L, weight_W=windows.weight_W, domain_W=windows.domain_W)
    judge = Judge(partial(objective_seconds_L, problem, windows), windows.loads, law)
    return prove(problem, proof, judge, seed=search.seed, budget_seconds=half)


def _search(problem: Problem, search: Search) -> Solved:
    found = _found(problem, search)
    if problem.resplittable:
        found = replace(found, placement=joined(problem, found.placement))  # whatever the method, and after settling
        if problem.survive is not None and _apart_L(found.placement).any():
            raise Infeasible(f"no rows were found that join all GPUs and survive the loss of {problem.survive}; drop --resplittable, or take more --redundant")
    if problem.survive is None or search.method in LAYOUTS:
        return found
    return replace(found, placement=_dispersed(problem, problem.survive, found.placement, search.progress))


def _dispersed(problem: Problem, survive: Survival, placement: Placement, progress: Progress | None) -> Placement:
    """The placement, with the layers dispersed that this leaves as fast while nothing is lost, under the engine's own rule."""
    node_G = problem.node_G if survive.node or spread_nodes(problem) is not None else None
    dispersed_LP = in_order(disperse(problem.shares_LE, placement.expert_LP, survive.place_G(problem.node_G), node_G, progress), problem.gpus)
    dispersed = Placement(dispersed_LP, placement.layer_ids, placement.gpus)
    kept_L = cost(problem, dispersed).layer_seconds_L <= cost(problem, placement).layer_seconds_L * (1 + PRICE_OF_DISPERSAL)
    if problem.resplittable:
        kept_L &= ~_apart_L(dispersed)
    return Placement(np.where(kept_L[:, None], dispersed_LP, placement.expert_LP), placement.layer_ids, placement.gpus)


def _apart_L(placement: Placement) -> npt.NDArray[np.bool_]:
    """Layers whose GPUs shared experts do not join."""
    return np.asarray((island_LG(placement.expert_LP, placement.gpus) > 0).any(axis=1))


def _found(problem: Problem, search: Search) -> Solved:
    settings: dict[str, Any] = {"seed": search.seed, "budget_seconds": search.budget_seconds, "progress": search.progress}
    searched = in_expectation(problem)
    if search.method == "auto":
        found = solve_by_objective(searched, fitted_windows(searched), settings)
        return replace(found, placement=_settled(problem, found.placement))
    if search.method == "cpsat":
        return cpsat.solve_with_bounds(searched, **settings)
    placement = find_method(search.method)(searched, **settings)
    return Solved(placement, np.zeros(len(placement.layer_ids)))


def solve_by_objective(problem: Problem, windows: Windows, settings: Mapping[str, Any]) -> Solved:
    """The portfolio, compared by the problem's objective over these windows: what is fastest, not only what is balanced. Layers know nothing of each other."""
    budget_seconds = settings["budget_seconds"]
    stop = math.inf if budget_seconds is None else time.monotonic() + budget_seconds
    score = partial(objective_seconds_L, problem, windows)
    found = auto.solve_with_bounds(problem, score=score, **settings)
    placement = found.placement
    few_L = sparse.few_touched_L(problem)
    if few_L.any() and time.monotonic() < stop:
        cold_LP = np.where(few_L[:, None], sparse.solve(problem).expert_LP, placement.expert_LP)
        placement = best_rows(placement, [Placement(cold_LP, placement.layer_ids, placement.gpus)], score)
    if problem.resplittable:
        placement = joined(problem, placement)
    return replace(found, placement=levelled(problem, windows, placement, score, lambda: time.monotonic() < stop))


def _settled(problem: Problem, placement: Placement) -> Placement:
    """The placement, with the layers settled that this makes faster under the engine's own rule. Settling one layer changes no other.

    Compared on the whole fitted load, not by windows: that left layers unsettled which gained on held-out load (docs/log.md).
    """
    if problem.replica_rule in SETTLED_BY_SEARCH or (problem.replica_rule == "nearest-static" and table_draws(placement, problem.model) > LARGEST_EXACT_TABLE):
        return placement
    settled = settle(problem, placement)
    if problem.objective.robust:  # the sum of the domains says nothing of the worst
        windows = fitted_windows(problem)
        faster_L = objective_seconds_L(problem, windows, settled) < objective_seconds_L(problem, windows, placement)
    else:
        faster_L = cost(problem, settled).layer_seconds_L < cost(problem, placement).layer_seconds_L
    return Placement(np.where(faster_L[:, None], settled.expert_LP, placement.expert_LP), placement.layer_ids, placement.gpus)


def _replanned(problem: Problem, standing: Standing, found: Placement) -> Placement:
    """The re-plan by the objective over fitted windows in expectation; then settled under the engine's own rule, as far as the moves allow."""
    searched = in_expectation(problem)
    replanned = restrained(searched, standing, found, partial(objective_seconds_L, searched, fitted_windows(searched)))
    settled = aligned(standing.placement, _settled(problem, replanned))
    if (settled.expert_LP == replanned.expert_LP).all():
        return replanned
    most = standing.placement.expert_LP.size if standing.most_moves is None else standing.most_moves
    return chosen(standing.placement, [replanned, settled], lambda offer: cost(problem, offer).layer_seconds_L, most)


def in_expectation(problem: Problem) -> Problem:
    """The same problem under a rule that costs less to evaluate and has the same mean; a solver searches with it, the judge does not."""
    return problem.with_rule(EXPECTATION.get(problem.replica_rule, problem.replica_rule))


def fitted_windows(problem: Problem) -> Windows:
    """The fitted load in a few windows."""
    return windows_of(problem, problem.load)
