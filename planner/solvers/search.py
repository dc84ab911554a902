"""From a problem to a placement: blocks of layers over processes, the best row of each, then settled.

The portfolio is compared by the objective, in expectation. Every step after it keeps what the objective says
is better under the engine's own rule.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, Infeasible
from planner.cost import affordable_windows, windows_of
from planner.placement import Placement
from planner.problem import Problem, Survival, island_LG, joinable
from planner.replica import ACROSS_LAYERS
from planner.solvers.best import Score, best_rows, rows_where
from planner.solvers.blocks import solve_in_blocks
from planner.solvers.effort import search_seconds
from planner.solvers.kernels.arrays import Solved, spread_nodes
from planner.solvers.kernels.disperse import disperse
from planner.solvers.kernels.packing import in_order
from planner.solvers.levelling import joined, levelled
from planner.solvers.methods import auto, cpsat, sparse
from planner.solvers.registry import Progress, find_method
from planner.solvers.settling import (
    fitted_windows,
    in_expectation,
    layer_by_layer,
    objective_score,
    settled_rows,
)
from planner.solvers.workforce import BY_SIZE, Deadline, Workforce

LARGEST_SEED = 2**31 - 1  # that CP-SAT takes
LAYOUTS = ("linear", "round-robin")  # that are asked for as they are
PRICE_OF_DISPERSAL = 0.005  # of a layer's step that may be paid for less work after a loss


@dataclass(frozen=True)
class Search:
    """How to look for an answer.

    A budget in seconds makes the answer depend on the machine; without one it does not.
    """

    method: str = "auto"
    seed: int = 0
    budget_seconds: float | None = None
    progress: Progress | None = None
    prove: bool = False  # spend half of the budget, or a counted effort, on closing the gap to the bounds
    workforce: Workforce = BY_SIZE

    def __post_init__(self) -> None:
        if not 0 <= self.seed <= LARGEST_SEED:
            raise BadInput(f"--seed {self.seed}: give a whole number from 0 to {LARGEST_SEED}")
        budget = self.budget_seconds
        if budget is not None and not (math.isfinite(budget) and budget > 0):
            raise BadInput(
                f"--budget {budget:g}: give a number of seconds above 0, or leave it out for an answer that "
                "is the same on every machine"
            )


def find_placement(problem: Problem, search: Search) -> Solved:
    """What the method asked for answers, settled under the engine's own rule.

    It is made to keep what the problem asks besides speed.
    """
    found = _found(problem, search)
    if problem.resplittable:
        # Whatever the method, and after settling
        found = replace(found, placement=joined(problem, found.placement))
        if problem.survive is not None and _apart_L(found.placement).any():
            raise Infeasible(
                f"no rows were found that join all GPUs and survive the loss of {problem.survive}; "
                "drop --resplittable, or take more --redundant"
            )
    if problem.survive is None or search.method in LAYOUTS or found.stopped:
        return found
    survive = problem.survive
    return _unless_stopped(found, lambda kept: _dispersed(problem, survive, kept, search.progress))


def whole_placement(problem: Problem, search: Search) -> Placement:
    """What `find_placement` finds, for a caller that has no use for half a search: Ctrl-C goes through."""
    found = find_placement(problem, search)
    if found.stopped:
        raise KeyboardInterrupt
    return found.placement


def _unless_stopped(found: Solved, step: Callable[[Placement], Placement]) -> Solved:
    """After a step that may be left out, or without it where Ctrl-C came."""
    try:
        return replace(found, placement=step(found.placement))
    except KeyboardInterrupt:
        return replace(found, stopped="stopped by Ctrl-C in the last steps of the search: the best so far")


def _dispersed(
    problem: Problem, survive: Survival, placement: Placement, progress: Progress | None
) -> Placement:
    """The layers dispersed that this leaves as fast while nothing is lost, under the engine's own rule."""
    node_G = problem.node_G if survive.node or spread_nodes(problem) is not None else None
    place_G = survive.place_G(problem.node_G)
    dispersed_LP = disperse(problem.shares_LE, placement.expert_LP, place_G, node_G, progress)
    dispersed = replace(placement, expert_LP=in_order(dispersed_LP, problem.gpus))
    score = objective_score(problem)
    kept_L = score(dispersed) <= score(placement) * (1 + PRICE_OF_DISPERSAL)
    if problem.resplittable:
        kept_L &= ~_apart_L(dispersed)
    return rows_where(kept_L, dispersed, placement)


def _apart_L(placement: Placement) -> npt.NDArray[np.bool_]:
    """Layers whose GPUs shared experts do not join."""
    return np.asarray((island_LG(placement.expert_LP, placement.gpus) > 0).any(axis=1))


def _found(problem: Problem, search: Search) -> Solved:
    searched = in_expectation(problem)
    windows = affordable_windows(problem, problem.load)
    solve = partial(_solve_layers, method=search.method, seed=search.seed, windows=windows)
    seconds = min(search_seconds(searched, search.method, windows), search.budget_seconds or math.inf)
    deadline = Deadline(search.budget_seconds, search.progress)
    found = solve_in_blocks(problem, solve, search.workforce, deadline, seconds=seconds)
    if search.method != "auto" or problem.replica_rule not in ACROSS_LAYERS or found.stopped:
        return found
    return _unless_stopped(found, lambda kept: settled_rows(problem, fitted_windows(problem), kept))


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
        return solve_by_objective(problem, windows, settings)
    searched = in_expectation(problem)
    if method == "cpsat":
        return cpsat.solve_with_bounds(searched, **settings)
    placement = find_method(method)(searched, **settings)
    return Solved(placement, np.zeros(len(placement.layer_ids)))


def solve_by_objective(problem: Problem, count: int, settings: Mapping[str, Any]) -> Solved:
    """The portfolio, compared by the objective over so many windows of each domain; levelled, and settled.

    Layers know nothing of each other.
    """
    budget_seconds = settings["budget_seconds"]
    stop = math.inf if budget_seconds is None else time.monotonic() + budget_seconds
    searched, windows = in_expectation(problem), windows_of(problem, problem.load, count)
    score = objective_score(searched, windows)
    own = objective_score(layer_by_layer(problem), windows)
    found = auto.solve_with_bounds(searched, score=score, **settings)
    steps: list[Callable[[Placement], Placement]] = [
        lambda placement: _with_cold(searched, placement, score),
        lambda placement: _connected(problem, placement, own),
        lambda placement: levelled(searched, windows, placement, own, lambda: time.monotonic() < stop),
        lambda placement: settled_rows(problem, windows, placement),
    ]
    for step in steps if problem.replica_rule not in ACROSS_LAYERS else steps[:-1]:
        if found.stopped or time.monotonic() >= stop:
            break
        found = _unless_stopped(found, step)
    return found


def _with_cold(problem: Problem, placement: Placement, score: Score) -> Placement:
    """Cold experts replicated where a step touches few, and that is faster."""
    few_L = sparse.few_touched_L(problem)
    if not few_L.any():
        return placement
    return best_rows(placement, [rows_where(few_L, sparse.solve(problem), placement)], score)


def _connected(problem: Problem, placement: Placement, score: Score) -> Placement:
    """Joined where that is asked for; under `lp` where it is no worse.

    It is as good on windows that the engine balances anyway, and better on those that nobody has seen.
    """
    if problem.resplittable:
        return joined(problem, placement)
    if problem.replica_rule != "lp" or not joinable(problem.gpus, problem.redundant):
        return placement
    return best_rows(joined(problem, placement), [placement], score)
