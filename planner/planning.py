"""From what a person asked to a judged plan: pose the problem, choose R, run a method, compare with doing nothing."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.cost import cost
from planner.engines import default_placement
from planner.errors import Infeasible
from planner.load import LoadProfile
from planner.load_split import merge_windows
from planner.model import ModelSpec
from planner.placement import Placement
from planner.plan import Origin, Plan, judged
from planner.problem import Problem, Workload, check_slots
from planner.replica import EXPECTATION, LARGEST_EXACT_TABLE, table_draws
from planner.solve import Progress, auto, cpsat, find_method
from planner.solve.arrays import Solved
from planner.solve.settle import settle
from planner.topology import Topology
from planner.traffic import TRACED_TOKENS
from planner.workers import BY_SIZE, Crew, Haste, solve_in_blocks

AUTO_STEPS = 4  # how many values of R `--redundant auto` tries: the fewest, and one to three more slots a GPU
AUTO_TOLERANCE = 0.02  # fewer replicas are preferred where they cost at most this share of the step more
MOST_WINDOWS = 8  # over which candidates are compared
WINDOW_WORK = 200_000_000  # cells of traffic matrices that one comparison may take
SETTLED_BY_SEARCH = ("even", "nearest")  # rules that the search follows to the letter
AUTO_CANDIDATES, CELL_SECONDS, SLOT_SECONDS = 4, 1.5e-8, 2e-5  # about what a search looks at: placements, cells of a judgement, slots of a layer
AUTO_FREE_SHARE = 0.2  # share of each GPU's memory that `--redundant auto` leaves free

Pose = Callable[[int], Problem]


@dataclass(frozen=True)
class Search:
    """How to look for an answer. A budget in seconds makes the answer depend on the machine; without one it does not."""

    method: str = "auto"
    seed: int = 0
    budget_seconds: float | None = None
    progress: Progress | None = None
    crew: Crew = BY_SIZE


def poser(model: ModelSpec, topology: Topology, load: LoadProfile, workload: Workload, *, replica_rule: str, kv_floor_bytes: float = 0.0) -> Pose:
    """The problem as a function of R, the redundant experts on all GPUs of the topology; Infeasible for an R that does not fit."""

    def pose(redundant: int) -> Problem:
        return Problem(topology, model, load, workload, check_slots(model, topology.gpu_count, redundant), replica_rule, kv_floor_bytes)

    return pose


def choose_redundant(pose: Pose, model: ModelSpec, gpus: int, search: Search) -> tuple[int, str]:
    """The fewest redundant experts whose refined plan is predicted within 2 % of the best R tried, and a sentence that says so. Fitted load only."""
    least = -model.experts % gpus
    seconds: dict[int, float] = {}
    for step in range(AUTO_STEPS):
        redundant = least + step * gpus
        if search.progress:
            search.progress(step / AUTO_STEPS, f"trying R = {redundant}")
        try:
            problem = pose(redundant)
        except Infeasible:
            if not seconds:
                raise
            break
        if seconds and not _leaves_room(problem):
            break
        searched = in_expectation(problem)
        placement = find_method("refine")(searched, seed=search.seed)
        seconds[redundant] = float(mean_layer_seconds(searched, fitted_windows(searched), placement).sum())
    chosen = min(count for count, found in seconds.items() if found <= min(seconds.values()) * (1 + AUTO_TOLERANCE))
    tried = ", ".join(f"R={count} {found * 1e3:.4g} ms" for count, found in seconds.items())
    return chosen, f"R = {chosen} was chosen: the fewest replicas within 2 % of the best predicted step, 20 % of GPU memory kept free ({tried})"


def make_plan(pose: Pose, redundant: int, search: Search, origin: Origin, held_out_load: LoadProfile | None = None) -> Plan:
    """Solve for R redundant experts, and judge the answer beside the engine's default placement with the same R and with the fewest."""
    problem = pose(redundant)
    solved = _search(problem, search)
    baselines = {"engine default, same R": (problem, default_placement(origin.engine, problem))}
    least = -problem.model.experts % problem.gpus
    if redundant != least:
        fewest = pose(least)
        baselines[f"engine default, R = {least}"] = (fewest, default_placement(origin.engine, fewest))
    return judged(
        problem,
        solved.placement,
        proven_share_L=solved.bound_L if problem.replica_rule == "even" else None,
        held_out_load=held_out_load,
        baselines=baselines,
        origin=replace(
            origin,
            notes=(*origin.notes, *_rule_notes(problem, solved.placement), *((solved.stopped,) if solved.stopped else ())),
            stopped=bool(solved.stopped),
        ),
    )


def _rule_notes(problem: Problem, placement: Placement) -> tuple[str, ...]:
    """What the judge could not follow to the letter."""
    if problem.replica_rule != "nearest-static" or table_draws(placement, problem.model) <= LARGEST_EXACT_TABLE:
        return ()
    return ("the engine's dispatch table is too large to reproduce draw by draw: the plan is judged in its expectation, the rule 'nearest'",)


def _search(problem: Problem, search: Search) -> Solved:
    searched = in_expectation(problem)
    windows = affordable_windows(searched)
    solve = partial(_solve_layers, method=search.method, seed=search.seed, windows=windows)
    found = solve_in_blocks(searched, solve, search.crew, Haste(search.budget_seconds, search.progress), seconds=_search_seconds(searched, search, windows))
    return replace(found, placement=_settled(problem, found.placement)) if search.method == "auto" else found


def _solve_layers(problem: Problem, *, budget_seconds: float | None, progress: Progress | None, method: str, seed: int, windows: int) -> Solved:
    """One block of layers, in whatever process it came to."""
    settings: dict[str, Any] = {"seed": seed, "budget_seconds": budget_seconds, "progress": progress}
    if method == "auto":  # the portfolio keeps what is fastest, not only what is balanced
        return auto.solve_with_bounds(problem, score=partial(mean_layer_seconds, problem, fitted_windows(problem, windows)), **settings)
    if method == "cpsat":
        return cpsat.solve_with_bounds(problem, **settings)
    placement = find_method(method)(problem, **settings)
    return Solved(placement, np.zeros(len(placement.layer_ids)))


def _settled(problem: Problem, placement: Placement) -> Placement:
    """The placement, with the layers settled that this makes faster under the engine's own rule. Settling one layer changes no other.

    Compared on the whole fitted load, not by windows: that left layers unsettled which gained on held-out load (docs/log.md).
    """
    if problem.replica_rule in SETTLED_BY_SEARCH or (problem.replica_rule == "nearest-static" and table_draws(placement, problem.model) > LARGEST_EXACT_TABLE):
        return placement
    settled = settle(problem, placement)
    faster_L = cost(problem, settled).layer_seconds_L < cost(problem, placement).layer_seconds_L
    return Placement(np.where(faster_L[:, None], settled.expert_LP, placement.expert_LP), placement.layer_ids, placement.gpus)


def in_expectation(problem: Problem) -> Problem:
    """The same problem under a rule that costs less to evaluate and has the same mean; a solver searches with it, the judge does not."""
    return problem.with_rule(EXPECTATION.get(problem.replica_rule, problem.replica_rule))


def affordable_windows(problem: Problem) -> int:
    """How many windows candidates are compared over; fewer where evaluating one is expensive."""
    affordable = WINDOW_WORK // (problem.gpus**2 * len(problem.model.placed_layer_ids))
    return int(min(max(affordable, 1), MOST_WINDOWS))


def fitted_windows(problem: Problem, count: int | None = None) -> list[LoadProfile]:
    """The fitted load in `count` windows, or as many as are affordable, one profile each."""
    merged = merge_windows(problem.load, count or affordable_windows(problem))
    return [merged.with_windows([window]) for window in range(merged.windows)]


def mean_layer_seconds(problem: Problem, windows: list[LoadProfile], placement: Placement) -> npt.NDArray[np.float64]:
    """Predicted seconds of each layer, averaged over the windows: a placement that fits their sum alone fits none of them, nor the next."""
    return np.asarray(np.mean([cost(problem, placement, window).layer_seconds_L for window in windows], axis=0))


def _leaves_room(problem: Problem) -> bool:
    memory_G = np.array([gpu.model.memory_bytes for gpu in problem.topology.gpus])
    return bool((problem.free_bytes_G >= AUTO_FREE_SHARE * memory_G).all())


def _search_seconds(problem: Problem, search: Search, windows: int) -> float:
    """About how long the search takes in one process, from its size alone: so that the choice of processes is the same on every machine."""
    gpus, layers, placed = problem.gpus, len(problem.model.placed_layer_ids), problem.slots
    sources = gpus if problem.replica_rule.startswith("nearest") else 1
    cells = sources * placed + (gpus**2 if sources > 1 or problem.workload.transport == "node" else gpus)
    if problem.load.trace is not None and problem.workload.transport in {"rank", "node"}:
        cells += TRACED_TOKENS * problem.model.top_k * (problem.topology.node_count if sources > 1 else 1)
    judging = AUTO_CANDIDATES * windows * layers * cells * CELL_SECONDS if search.method == "auto" else 0.0
    small = problem.model.experts * gpus <= cpsat.SMALL_CELLS
    proving = {"auto": auto.DETERMINISTIC_SECONDS if small else 0.0, "cpsat": cpsat.TOTAL_DETERMINISTIC_SECONDS}.get(search.method, 0.0)
    return min(judging + layers * placed * SLOT_SECONDS + proving, search.budget_seconds or math.inf)
