"""`moeplan budget`: what unequal rows gain over equal ones for a total of redundant experts.

Shapes: L layers, S sizes tried.
"""

import numpy as np

from planner.base import Infeasible
from planner.engines import engine_names, find_engine
from planner.planning.answer import resolve
from planner.planning.budget import BudgetReport
from planner.planning.redundancy import Curve, redundant_curve
from planner.planning.request import PlanRequest
from planner.planning.spread import fewest_for, spread
from planner.problem import Problem
from planner.solvers import Progress, Search

MOST_POINTS = 16  # slots a GPU that one layer may get beyond the fewest, and one


def budget_report(
    request: PlanRequest, total_redundant: int, progress: Progress | None = None
) -> BudgetReport:
    """The spread of `total_redundant` redundant experts of all layers together.

    Infeasible where it is too small for the layers, or for memory.
    """
    asked = resolve(request)
    problem = asked.problem_of(asked.least_redundant)
    layer_ids, gpus = problem.model.placed_layer_ids, problem.gpus
    fewest = len(layer_ids) * asked.least_redundant
    if total_redundant < fewest:
        raise Infeasible(
            f"--total-redundant {total_redundant}: {len(layer_ids)} layers on {gpus} GPUs "
            f"need {asked.least_redundant} each, {fewest} in all"
        )
    search = Search(seed=request.seed, progress=progress)
    curve = redundant_curve(
        asked.problem_of,
        asked.least_redundant,
        gpus,
        search,
        asked.held_out_load,
        to_the_end=True,
        most_points=MOST_POINTS,
    ).whole()
    budget = (total_redundant - fewest) // gpus
    _refuse_more_than_tried(total_redundant, budget, fewest, problem, curve)
    seconds_SL = np.array([point.fitted_seconds_L for point in curve.points])
    affordable_SL = seconds_SL[: budget // len(layer_ids) + 1]
    equal_extra = int(affordable_SL.sum(axis=1).argmin())  # more slots than help are no fair comparison
    used = fewest + budget * gpus
    return BudgetReport(
        layer_ids=layer_ids,
        gpus=gpus,
        experts=problem.model.experts,
        fewest_slots=problem.slots_per_gpu,
        total_redundant=used,
        equal_extra=equal_extra,
        unequal=spread(seconds_SL, budget),
        points=curve.points,
        budget_for_equal_time=fewest_for(seconds_SL, float(seconds_SL[equal_extra].sum())),
        notes=(*asked.notes, *_notes(total_redundant, used, gpus, curve.points[-1].slots_per_gpu)),
    )


def _refuse_more_than_tried(total: int, budget: int, fewest: int, problem: Problem, curve: Curve) -> None:
    most = (len(curve.points) - 1) * len(problem.model.placed_layer_ids)
    if budget > most:
        raise Infeasible(
            f"--total-redundant {total}: at most {fewest + most * problem.gpus} are looked at, "
            f"{curve.points[-1].slots_per_gpu} slots a GPU in every layer ({curve.floor}; {curve.end})"
        )


def _notes(total: int, used: int, gpus: int, largest: int) -> tuple[str, ...]:
    engines = ", ".join(f"{find_engine(name).TITLE} {find_engine(name).VERSION}" for name in engine_names())
    cut = f"{total} redundant experts are not whole slots on {gpus} GPUs; {used} are spread"
    alike = f"every map that these engines take has rows of one length for all layers: {engines}"
    return (
        *((cut,) if used != total else ()),
        f"one layer gets at most {largest} slots a GPU, as far as the curves go",
        f"{alike}; unequal rows show what an engine that took them would gain",
    )
