"""`cpsat`: small layers to proven optimality, large ones a few GPUs at a time. Owns OR-Tools.

Both from where swaps and replica moves end.
"""

import time

from planner.bounds import load_bound
from planner.placement import Placement
from planner.problem import Problem
from planner.solvers.kernels.arrays import Solved, placement_of, refined, replica_limit, spread_nodes
from planner.solvers.kernels.packing import peaks
from planner.solvers.methods.cpsat.exact import solve_exact
from planner.solvers.methods.cpsat.integers import Answer, Effort
from planner.solvers.methods.cpsat.neighbourhood import improve
from planner.solvers.methods.cpsat.rows import (
    Floats,
    Ints,
    first_alike,
    furthest_first,
    whole_loads_LE,
    with_seconds,
)
from planner.solvers.registry import Progress

SMALL_CELLS = 600  # experts x GPUs of a layer that is tried whole
CLOSE = 5e-4  # above its bound a large layer is left alone
MOST_LARGE_LAYERS = 40  # that get all rounds; where the model has more, each gets fewer
TOTAL_DETERMINISTIC_SECONDS = 12.0  # over small layers
MOST_A_LAYER = 2.0
ROUNDS, A_ROUND = 30, 0.03  # of a large layer: deterministic seconds each


def solve(
    problem: Problem, *, seed: int = 0, budget_seconds: float | None = None, progress: Progress | None = None
) -> Placement:
    """No layer's busiest GPU higher than `refine`'s where replicas share evenly."""
    return solve_with_bounds(problem, seed=seed, budget_seconds=budget_seconds, progress=progress).placement


def solve_with_bounds(
    problem: Problem,
    *,
    seed: int = 0,
    budget_seconds: float | None = None,
    progress: Progress | None = None,
    deterministic_seconds: float = TOTAL_DETERMINISTIC_SECONDS,
) -> Solved:
    """Layers with the largest gap first, layers of equal load once.

    A layer's effort follows from the model's size alone, not from the other rows at hand.
    `deterministic_seconds` is the solver's own measure of effort, over small layers; `budget_seconds` is a
    wall-clock limit, and an answer that it cut short is not reproducible.
    """
    stop = None if budget_seconds is None else time.monotonic() + budget_seconds
    expert_LP = refined(problem, lambda _: stop is None or time.monotonic() < stop)
    load_LE, gpus, slots = whole_loads_LE(problem), problem.gpus, problem.slots_per_gpu
    bound_L = load_bound(load_LE, gpus, slots, even=True, speed_G=problem.speed_G).load_L
    if problem.speed_G is not None:  # the models below know equal GPUs only
        return Solved(placement_of(problem, expert_LP), bound_L / load_LE.sum(axis=1))
    first_L, peak_L = first_alike(load_LE), peaks(load_LE, expert_LP, gpus)
    small = problem.model.experts * gpus <= SMALL_CELLS
    rows = furthest_first(peak_L, bound_L, first_L, 1e-9 if small else CLOSE)
    each = min(MOST_A_LAYER, deterministic_seconds / problem.model.layers)
    for done, (row, left) in enumerate(with_seconds(rows, stop)):
        if progress is not None:
            progress(done / len(rows), f"layer {problem.model.placed_layer_ids[row]}")
        if small:
            answer = _solved(problem, load_LE[row], expert_LP[row], Effort(each, left, seed))
            expert_LP[row], bound_L[row] = answer.expert_P, max(bound_L[row], answer.bound)
        else:
            goal = bound_L[row] * (1 + CLOSE)
            expert_LP[row] = _improved(problem, load_LE[row], expert_LP[row], goal, left, seed)
    return Solved(placement_of(problem, expert_LP[first_L]), (bound_L / load_LE.sum(axis=1))[first_L])


def _solved(problem: Problem, load_E: Floats, start_P: Ints, effort: Effort) -> Answer:
    return solve_exact(
        load_E,
        problem.gpus,
        problem.slots_per_gpu,
        least_per_expert=problem.least_replicas,
        most_per_expert=replica_limit(problem),
        node_G=spread_nodes(problem),
        start_P=start_P,
        effort=effort,
    )


def _improved(
    problem: Problem, load_E: Floats, expert_P: Ints, goal: float, left_seconds: float | None, seed: int
) -> Ints:
    layers, node_G = problem.model.layers, spread_nodes(problem)
    rounds = -(-ROUNDS * min(MOST_LARGE_LAYERS, layers) // layers)
    effort = Effort(A_ROUND, None if left_seconds is None else left_seconds / rounds, seed)
    return improve(load_E, expert_P, problem.gpus, goal=goal, rounds=rounds, node_G=node_G, effort=effort)
