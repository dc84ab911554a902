"""From a problem to a placement: layers in blocks over processes, the portfolio compared by the objective, then settled under the engine's own rule."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, Infeasible
from planner.cost import (
    TRACED_TOKENS,
    TRACED_WORK,
    Windows,
    affordable_windows,
    cells_a_token,
    cost,
    objective_seconds_L,
    windows_of,
)
from planner.placement import Placement
from planner.problem import Problem, Survival, island_LG
from planner.replica import EXPECTATION, LARGEST_EXACT_TABLE, table_draws
from planner.solvers.kernels.arrays import Solved, spread_nodes
from planner.solvers.kernels.disperse import disperse
from planner.solvers.kernels.packing import in_order
from planner.solvers.kernels.settle import settle
from planner.solvers.levelling import best_rows, joined, levelled
from planner.solvers.methods import auto, cpsat, sparse
from planner.solvers.methods.affinity.layers import helps
from planner.solvers.registry import Progress, find_method
from planner.solvers.workers import BY_SIZE, Deadline, Workforce, solve_in_blocks

SETTLED_BY_SEARCH = ("even", "nearest")  # rules that the search follows to the letter
LARGEST_SEED = 2**31 - 1  # that CP-SAT takes
LAYOUTS = ("linear", "round-robin")  # that are asked for as they are
PRICE_OF_DISPERSAL = 0.005  # of a layer's step that may be paid for less work after a loss
CELL_SECONDS, SLOT_SECONDS = (
    1.5e-8,
    2e-5,
)  # about what a search takes: for a cell of a judgement, and a slot of a layer
TRACED_CELL_SECONDS, AFFINITY_SECONDS = (
    3.5e-9,
    0.5,
)  # for a cell of a judgement over traced tokens, and to bring a traced layer's experts together
CANDIDATES, NEAR_CANDIDATES = (
    4,
    10,
)  # about how many placements `auto` judges, and where near replicas are preferred


@dataclass(frozen=True)
class Search:
    """How to look for an answer. A budget in seconds makes the answer depend on the machine; without one it does not."""

    method: str = "auto"
    seed: int = 0
    budget_seconds: float | None = None
    progress: Progress | None = None
    prove: bool = False  # spend half of the budget, or a counted effort, on closing the gap to the bounds
    workforce: Workforce = BY_SIZE

    def __post_init__(self) -> None:
        if not 0 <= self.seed <= LARGEST_SEED:
            raise BadInput(f"--seed {self.seed}: give a whole number from 0 to {LARGEST_SEED}")
        if self.budget_seconds is not None and not (
            math.isfinite(self.budget_seconds) and self.budget_seconds > 0
        ):
            raise BadInput(
                f"--budget {self.budget_seconds:g}: give a number of seconds above 0, or leave it out for an answer that is the same on every machine"
            )


def find_placement(problem: Problem, search: Search) -> Solved:
    """What the method asked for answers, settled under the engine's own rule, and made to keep what the problem asks besides speed."""
    found = _found(problem, search)
    if problem.resplittable:
        found = replace(
            found, placement=joined(problem, found.placement)
        )  # whatever the method, and after settling
        if problem.survive is not None and _apart_L(found.placement).any():
            raise Infeasible(
                f"no rows were found that join all GPUs and survive the loss of {problem.survive}; drop --resplittable, or take more --redundant"
            )
    if problem.survive is None or search.method in LAYOUTS:
        return found
    return replace(found, placement=_dispersed(problem, problem.survive, found.placement, search.progress))


def _dispersed(
    problem: Problem, survive: Survival, placement: Placement, progress: Progress | None
) -> Placement:
    """The placement, with the layers dispersed that this leaves as fast while nothing is lost, under the engine's own rule."""
    node_G = problem.node_G if survive.node or spread_nodes(problem) is not None else None
    dispersed_LP = in_order(
        disperse(problem.shares_LE, placement.expert_LP, survive.place_G(problem.node_G), node_G, progress),
        problem.gpus,
    )
    dispersed = Placement(dispersed_LP, placement.layer_ids, placement.gpus)
    kept_L = cost(problem, dispersed).layer_seconds_L <= cost(problem, placement).layer_seconds_L * (
        1 + PRICE_OF_DISPERSAL
    )
    if problem.resplittable:
        kept_L &= ~_apart_L(dispersed)
    return Placement(
        np.where(kept_L[:, None], dispersed_LP, placement.expert_LP), placement.layer_ids, placement.gpus
    )


def _apart_L(placement: Placement) -> npt.NDArray[np.bool_]:
    """Layers whose GPUs shared experts do not join."""
    return np.asarray((island_LG(placement.expert_LP, placement.gpus) > 0).any(axis=1))


def _found(problem: Problem, search: Search) -> Solved:
    searched = in_expectation(problem)
    windows = affordable_windows(searched, searched.load)
    solve = partial(_solve_layers, method=search.method, seed=search.seed, windows=windows)
    found = solve_in_blocks(
        searched,
        solve,
        search.workforce,
        Deadline(search.budget_seconds, search.progress),
        seconds=_search_seconds(searched, search, windows),
    )
    return (
        replace(found, placement=settled_rows(problem, found.placement)) if search.method == "auto" else found
    )


def _solve_layers(
    problem: Problem,
    *,
    budget_seconds: float | None,
    progress: Progress | None,
    method: str,
    seed: int,
    windows: int,
) -> Solved:
    """One block of layers, in whatever process it came to."""
    settings: dict[str, Any] = {"seed": seed, "budget_seconds": budget_seconds, "progress": progress}
    if method == "auto":  # the portfolio keeps what is fastest, not only what is balanced
        return solve_by_objective(problem, windows_of(problem, problem.load, windows), settings)
    if method == "cpsat":
        return cpsat.solve_with_bounds(problem, **settings)
    placement = find_method(method)(problem, **settings)
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
    return replace(
        found, placement=levelled(problem, windows, placement, score, lambda: time.monotonic() < stop)
    )


def settled_rows(problem: Problem, placement: Placement) -> Placement:
    """The placement, with the layers settled that this makes faster under the engine's own rule. Settling one layer changes no other.

    Compared on the whole fitted load, not by windows: that left layers unsettled which gained on held-out load (docs/log.md).
    """
    if problem.replica_rule in SETTLED_BY_SEARCH or (
        problem.replica_rule == "nearest-static"
        and table_draws(placement, problem.model) > LARGEST_EXACT_TABLE
    ):
        return placement
    settled = settle(problem, placement)
    if problem.objective.robust:  # the sum of the domains says nothing of the worst
        windows = fitted_windows(problem)
        faster_L = objective_seconds_L(problem, windows, settled) < objective_seconds_L(
            problem, windows, placement
        )
    else:
        faster_L = cost(problem, settled).layer_seconds_L < cost(problem, placement).layer_seconds_L
    return Placement(
        np.where(faster_L[:, None], settled.expert_LP, placement.expert_LP),
        placement.layer_ids,
        placement.gpus,
    )


def in_expectation(problem: Problem) -> Problem:
    """The same problem under a rule that costs less to evaluate and has the same mean; a solver searches with it, the judge does not."""
    return problem.with_rule(EXPECTATION.get(problem.replica_rule, problem.replica_rule))


def fitted_windows(problem: Problem) -> Windows:
    """The fitted load in a few windows."""
    return windows_of(problem, problem.load)


def _search_seconds(problem: Problem, search: Search, windows: int) -> float:
    """About how long the search takes in one process, from its size alone: so that the choice of processes is the same on every machine."""
    gpus, layers, placed = problem.gpus, len(problem.model.placed_layer_ids), problem.slots
    sources = gpus if problem.replica_rule.startswith(("nearest", "fixed")) else 1
    cells = sources * placed + (gpus**2 if sources > 1 or problem.workload.transport == "node" else gpus)
    each = windows * cells * CELL_SECONDS
    if problem.load.trace is not None and problem.workload.transport in {"rank", "node"}:
        tokens = min(problem.load.trace.experts_LTK.shape[1], windows * TRACED_TOKENS)
        each += min(tokens * cells_a_token(problem), TRACED_WORK) * TRACED_CELL_SECONDS
    judging = (
        (NEAR_CANDIDATES if problem.spreads_over_nodes else CANDIDATES) * layers * each
        if search.method == "auto"
        else 0.0
    )
    gathers = search.method in ("auto", "affinity") and problem.load.trace is not None and helps(problem)
    judging += layers * AFFINITY_SECONDS if gathers else 0.0
    small = problem.model.experts * gpus <= cpsat.SMALL_CELLS
    proving = {
        "auto": auto.DETERMINISTIC_SECONDS if small else 0.0,
        "cpsat": cpsat.TOTAL_DETERMINISTIC_SECONDS,
    }.get(search.method, 0.0)
    return min(judging + layers * placed * SLOT_SECONDS + proving, search.budget_seconds or math.inf)
