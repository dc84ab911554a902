"""`cpsat`: small layers to proven optimality, large ones a few GPUs at a time, both from where swaps and replica moves end. Owns OR-Tools."""

import time

import numpy as np
import numpy.typing as npt

from planner.bounds import load_bound
from planner.placement import Placement
from planner.problem import Problem
from planner.solvers.kernels.arrays import Solved, placement_of, refined, replica_limit, spread_nodes
from planner.solvers.kernels.packing import peaks
from planner.solvers.methods.cpsat.exact import solve_exact
from planner.solvers.methods.cpsat.integers import Effort
from planner.solvers.methods.cpsat.neighbourhood import improve
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
    """Layers with the largest gap first, layers of equal load once. A layer's effort follows from the model's size alone, not from the other rows at hand.

    `deterministic_seconds` is the solver's own measure of effort, over small layers; `budget_seconds` is a wall-clock limit, and an answer that it
    cut short is not reproducible.
    """
    stop = None if budget_seconds is None else time.monotonic() + budget_seconds
    gpus, most, node_G = problem.gpus, replica_limit(problem), spread_nodes(problem)
    expert_LP = refined(problem, lambda _: stop is None or time.monotonic() < stop)
    load_LE = np.where(problem.load.total_LE.any(axis=1, keepdims=True), problem.load.total_LE, 1).astype(
        np.float64
    )  # whole numbers, for exactness
    bound_L = load_bound(load_LE, gpus, problem.slots_per_gpu, even=True, speed_G=problem.speed_G).load_L
    if problem.speed_G is not None:  # the models below know equal GPUs only
        return Solved(placement_of(problem, expert_LP), bound_L / load_LE.sum(axis=1))
    peak_L = peaks(load_LE, expert_LP, gpus)
    small = problem.model.experts * gpus <= SMALL_CELLS
    first_L = first_alike(load_LE)
    rows = np.flatnonzero(
        (peak_L > bound_L * (1 + (1e-9 if small else CLOSE))) & (first_L == np.arange(len(first_L)))
    )
    rows = rows[np.argsort(-(peak_L / bound_L)[rows], kind="stable")]
    each = min(MOST_A_LAYER, deterministic_seconds / problem.model.layers)
    rounds = -(-ROUNDS * min(MOST_LARGE_LAYERS, problem.model.layers) // problem.model.layers)
    for done, row in enumerate(rows.tolist()):
        left = None if stop is None else (stop - time.monotonic()) / (len(rows) - done)
        if left is not None and left <= 0:
            break
        if progress is not None:
            progress(done / len(rows), f"layer {problem.model.placed_layer_ids[row]}")
        if small:
            effort = Effort(each, left, seed)
            limits = {"least_per_expert": problem.least_replicas, "most_per_expert": most}
            answer = solve_exact(
                load_LE[row],
                gpus,
                problem.slots_per_gpu,
                **limits,
                node_G=node_G,
                start_P=expert_LP[row],
                effort=effort,
            )
            expert_LP[row], bound_L[row] = answer.expert_P, max(bound_L[row], answer.bound)
        else:
            goal, effort = (
                bound_L[row] * (1 + CLOSE),
                Effort(A_ROUND, None if left is None else left / rounds, seed),
            )
            expert_LP[row] = improve(
                load_LE[row], expert_LP[row], gpus, goal=goal, rounds=rounds, node_G=node_G, effort=effort
            )
    return Solved(placement_of(problem, expert_LP[first_L]), (bound_L / load_LE.sum(axis=1))[first_L])


def first_alike(load_LE: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """first_L: for each layer the first one of the same load; filled layers are all alike.

    >>> first_alike(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])).tolist()
    [0, 1, 0]
    """
    _, first, alike_L = np.unique(load_LE, axis=0, return_index=True, return_inverse=True)
    return np.asarray(first[alike_L.ravel()])
