"""From what a person asked to a judged plan: pose the problem, run a method, compare with doing nothing."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from planner.base import BadInput, finishing
from planner.engines import default_placement
from planner.load import LoadProfile, split_notes
from planner.model import ModelSpec
from planner.placement import Placement
from planner.plan import PREVIOUS, REFILLED, Moves, Origin, Plan, judged
from planner.planning.plan_notes import objective_notes, rule_notes
from planner.planning.replanning import moved, replanned
from planner.problem import Objective, Problem, Workload, check_slots
from planner.solvers import (
    CurrentPlacement,
    Judge,
    Proof,
    Search,
    find_placement,
    fitted_windows,
    objective_score,
    prove,
    whole_placement,
)
from planner.topology import Topology

ProblemOfR = Callable[[int], Problem]
STOPPED_AFTER = "stopped by Ctrl-C when the plan was found: what comes after the search is left out"


def problem_of_r(
    model: ModelSpec, topology: Topology, load: LoadProfile, workload: Workload, **limits: Any
) -> ProblemOfR:
    """The problem as a function of R, the redundant experts on all GPUs of the topology; Infeasible for an R
    that does not fit.

    `limits` are the other fields of a Problem: replica_rule, kv_floor_bytes, objective, resplittable.
    """
    ep_sizes = topology.ep_sizes()

    def problem_of(redundant: int) -> Problem:
        slots_per_gpu = check_slots(model, topology.gpu_count, redundant, ep_sizes)
        return Problem(topology, model, load, workload, slots_per_gpu, **limits)

    return problem_of


def make_plan(
    problem_of: ProblemOfR,
    redundant: int,
    search: Search,
    origin: Origin,
    held_out_load: LoadProfile | None = None,
    current: CurrentPlacement | None = None,
) -> Plan:
    """Solve for R redundant experts, and judge the answer beside the engine's default placement with the same
    R and with the fewest.

    With `current`, the answer is a re-plan of the placement that runs, within its limit of moves, judged
    beside it too.
    """
    problem = problem_of(redundant)
    _refuse_one_domain(problem, search)
    default = default_placement(origin.engine, problem)
    proof = _prove(problem, search)
    placement, moves = _default_drafts(problem, proof.placement, default), None
    if current is not None:
        proof, placement, moves = _replanned(problem, proof, current)
    notes = (
        *origin.notes,
        *split_notes(problem.load, held_out_load),
        *objective_notes(problem, search),
        *rule_notes(problem, placement),
    )
    if search.progress:
        search.progress(1.0, "judging")
    with finishing() as pressed:
        plan = judged(
            problem,
            placement,
            proven_share_L=proof.load_share_L,
            optimal_L=proof.optimal_L & (placement.expert_LP == proof.placement.expert_LP).all(axis=1),
            held_out_load=held_out_load,
            baselines=_baselines(problem, origin.engine, default, current),
            origin=replace(origin, notes=notes),
            moves=moves,
        )
    return stopped_plan(plan, proof.stopped or (STOPPED_AFTER if pressed else ""))


def stopped_plan(plan: Plan, why: str) -> Plan:
    """The plan, with a note where Ctrl-C cut something short."""
    if not why:
        return plan
    return replace(plan, origin=replace(plan.origin, notes=(*plan.origin.notes, why), stopped=True))


def _replanned(
    problem: Problem, proof: Proof, current: CurrentPlacement
) -> tuple[Proof, Placement, Moves | None]:
    """The re-plan and its moves; what runs, where Ctrl-C comes."""
    try:
        placement = replanned(problem, current, proof.placement)
    except KeyboardInterrupt:
        placement = current.placement
        proof = replace(proof, stopped="stopped by Ctrl-C before anything was found to be worth a move")
    placement = _default_drafts(problem, placement, current.placement)
    return proof, *moved(problem, current, placement)


def quick_placement(problem: Problem, search: Search, engine: str | None) -> Placement:
    """The placement of the plan that `make_plan` makes, without the plan: nothing is proven or judged."""
    placement = whole_placement(problem, search)
    return _default_drafts(problem, placement, default_placement(engine, problem))


def _refuse_one_domain(problem: Problem, search: Search) -> None:
    if not problem.objective.robust:
        return
    if search.method != "auto":
        raise BadInput(
            f"--robust weighs candidates by the worst domain, which --method {search.method} cannot; "
            "use --method auto"
        )
    if len(problem.load.domain_names) < 2:
        raise BadInput(
            "--robust needs at least two domains to weigh; give --load once for each, every file a domain"
        )


def _baselines(
    problem: Problem, engine: str | None, default: Placement, current: CurrentPlacement | None
) -> dict[str, tuple[Problem, Placement]]:
    """What the plan is held against: the engine's default, and the placement that runs."""
    found = {"engine default, same R": (problem, default)}
    least = -problem.model.experts % problem.gpus
    if problem.redundant != least:
        slots_per_gpu = (problem.model.experts + least) // problem.gpus
        # doing nothing survives no loss
        fewest = replace(problem, slots_per_gpu=slots_per_gpu, resplittable=False, survive=None)
        found[f"engine default, R = {least}"] = (fewest, default_placement(engine, fewest))
    if current is not None:
        found[REFILLED if current.resize else PREVIOUS] = (problem, current.placement)
    return found


def _default_drafts(problem: Problem, placement: Placement, default: Placement) -> Placement:
    """The placement with the default row (or that which runs) in draft layers that a measured load says
    nothing of: other layers' load is none of theirs.
    """
    load = problem.load
    if len(load.unmeasured_layer_ids) == len(load.layer_ids):
        return placement
    unknown = set(problem.model.draft_layer_ids) & set(load.unmeasured_layer_ids)
    unknown_L = np.array([layer in unknown for layer in placement.layer_ids])
    rows_LP = np.where(unknown_L[:, None], default.expert_LP, placement.expert_LP)
    return Placement(rows_LP, placement.layer_ids, placement.gpus)


def _prove(problem: Problem, search: Search) -> Proof:
    """The answer of the search with what is proven of it."""
    half = None if search.budget_seconds is None else search.budget_seconds / 2
    solved = find_placement(problem, replace(search, budget_seconds=half) if search.prove else search)
    spreads = problem.survive and problem.survive.node  # a bound holds of every placement, not of these alone
    holds = problem.replica_rule == "even" and not spreads
    known_L = solved.bound_L if holds else np.zeros_like(solved.bound_L)
    proof = Proof(solved.placement, known_L, np.zeros(len(known_L), dtype=bool), solved.stopped)
    if not search.prove or solved.stopped:
        return proof
    if search.progress:
        search.progress(0.9, "proving")
    windows = fitted_windows(problem)
    grows = problem.objective
    if grows.kind == "risk":
        grows = Objective("mean", robust=grows.robust)
    law = partial(grows.seconds_L, weight_W=windows.weight_W, domain_W=windows.domain_W)
    judge = Judge(objective_score(problem, windows), windows.loads, law)
    try:
        return prove(problem, proof, judge, seed=search.seed, budget_seconds=half)
    except KeyboardInterrupt:
        return replace(proof, stopped="stopped by Ctrl-C while proving: nothing more is proven of the plan")
