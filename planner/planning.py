"""From what a person asked to a judged plan: pose the problem, choose R, run a method, compare with doing nothing."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from planner.cost import cost
from planner.engines import default_placement
from planner.errors import BadInput, Infeasible
from planner.load import LoadProfile
from planner.load_split import split_notes
from planner.model import ModelSpec
from planner.placement import Placement
from planner.plan import Origin, Plan, judged
from planner.problem import Problem, Workload, check_slots
from planner.replica import EXPECTATION, LARGEST_EXACT_TABLE, table_draws
from planner.score import Windows, objective_seconds_L, windows_of
from planner.shift import best_rows, joined, levelled
from planner.solve import Progress, auto, cpsat, find_method, sparse
from planner.solve.arrays import Solved
from planner.solve.settle import settle
from planner.topology import Topology

AUTO_STEPS = 4  # how many values of R `--redundant auto` tries: the fewest, and one to three more slots a GPU
AUTO_TOLERANCE = 0.02  # fewer replicas are preferred where they cost at most this share of the step more
SETTLED_BY_SEARCH = ("even", "nearest")  # rules that the search follows to the letter
AUTO_FREE_SHARE = 0.2  # share of each GPU's memory that `--redundant auto` leaves free

Pose = Callable[[int], Problem]


@dataclass(frozen=True)
class Search:
    """How to look for an answer. A budget in seconds makes the answer depend on the machine; without one it does not."""

    method: str = "auto"
    seed: int = 0
    budget_seconds: float | None = None
    progress: Progress | None = None


def poser(model: ModelSpec, topology: Topology, load: LoadProfile, workload: Workload, **limits: Any) -> Pose:
    """The problem as a function of R, the redundant experts on all GPUs of the topology; Infeasible for an R that does not fit.

    `limits` are the other fields of a Problem: replica_rule, kv_floor_bytes, objective, resplittable.
    """

    def pose(redundant: int) -> Problem:
        return Problem(topology, model, load, workload, check_slots(model, topology.gpu_count, redundant), **limits)

    return pose


def choose_redundant(pose: Pose, model: ModelSpec, gpus: int, search: Search) -> tuple[int, str]:
    """The fewest redundant experts whose refined plan is predicted within 2 % of the best R tried, and a sentence that says so. Fitted load only."""
    least = -model.experts % gpus
    seconds: dict[int, float] = {}
    refused: Infeasible | None = None
    for step in range(AUTO_STEPS):
        redundant = least + step * gpus
        if search.progress:
            search.progress(step / AUTO_STEPS, f"trying R = {redundant}")
        try:
            problem = pose(redundant)
        except Infeasible as error:
            if seconds:
                break
            refused = refused or error  # too few for --resplittable; or too many, and then more are as well
            continue
        if seconds and not _leaves_room(problem):
            break
        searched = in_expectation(problem)
        placement = find_method("refine")(searched, seed=search.seed)
        seconds[redundant] = float(objective_seconds_L(searched, fitted_windows(searched), placement).sum())
    if not seconds and refused:
        raise refused
    chosen = min(count for count, found in seconds.items() if found <= min(seconds.values()) * (1 + AUTO_TOLERANCE))
    tried = ", ".join(f"R={count} {found * 1e3:.4g} ms" for count, found in seconds.items())
    return chosen, f"R = {chosen} was chosen: the fewest replicas within 2 % of the best predicted step, 20 % of GPU memory kept free ({tried})"


def make_plan(pose: Pose, redundant: int, search: Search, origin: Origin, held_out_load: LoadProfile | None = None) -> Plan:
    """Solve for R redundant experts, and judge the answer beside the engine's default placement with the same R and with the fewest."""
    problem = pose(redundant)
    if problem.objective.robust:
        if search.method != "auto":
            raise BadInput(f"--robust weighs candidates by the worst domain, which --method {search.method} cannot; use --method auto")
        if len(problem.load.domain_names) < 2:
            raise BadInput("--robust needs at least two domains to weigh; give --load once for each, every file a domain")
    solved = _search(problem, search)
    baselines = {"engine default, same R": (problem, default_placement(origin.engine, problem))}
    least = -problem.model.experts % problem.gpus
    if redundant != least:
        fewest = replace(problem, slots_per_gpu=(problem.model.experts + least) // problem.gpus, resplittable=False)
        baselines[f"engine default, R = {least}"] = (fewest, default_placement(origin.engine, fewest))
    return judged(
        problem,
        solved.placement,
        proven_share_L=solved.bound_L if problem.replica_rule == "even" else None,
        held_out_load=held_out_load,
        baselines=baselines,
        origin=replace(
            origin,
            notes=(*origin.notes, *split_notes(problem.load, held_out_load), *_objective_notes(problem, search), *_rule_notes(problem, solved.placement)),
        ),
    )


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


def _search(problem: Problem, search: Search) -> Solved:
    found = _found(problem, search)
    if not problem.resplittable:
        return found
    return replace(found, placement=joined(problem, found.placement))  # whatever the method, and after settling


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


def in_expectation(problem: Problem) -> Problem:
    """The same problem under a rule that costs less to evaluate and has the same mean; a solver searches with it, the judge does not."""
    return problem.with_rule(EXPECTATION.get(problem.replica_rule, problem.replica_rule))


def fitted_windows(problem: Problem) -> Windows:
    """The fitted load in a few windows."""
    return windows_of(problem, problem.load)


def _leaves_room(problem: Problem) -> bool:
    memory_G = np.array([gpu.model.memory_bytes for gpu in problem.topology.gpus])
    return bool((problem.free_bytes_G >= AUTO_FREE_SHARE * memory_G).all())
