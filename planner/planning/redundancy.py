"""`--redundant auto`: the curve over R, from the fewest that are feasible to what memory allows."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from planner.base import Infeasible
from planner.cost import (
    PATIENCE,
    TOLERANCE,
    WORTH,
    Cost,
    CurvePoint,
    Floats,
    chosen,
    cost,
    ledger,
    levelled_off,
    objective_seconds_L,
)
from planner.load import LoadProfile
from planner.planning.solving import ProblemOfR
from planner.problem import Problem
from planner.solvers import Search, find_method, fitted_windows, in_expectation

MOST_POINTS = 16


@dataclass(frozen=True, eq=False)
class Curve:
    """The points, in rising order of R, and why there are no more."""

    points: tuple[CurvePoint, ...]
    end: str
    floor: str
    stopped: bool = False  # by Ctrl-C, after some points

    def whole(self) -> "Curve":
        """Itself; Ctrl-C goes through after all where it ended the curve."""
        if self.stopped:
            raise KeyboardInterrupt
        return self

    @property
    def redundant(self) -> int:
        return chosen(self.points).redundant

    @property
    def why(self) -> str:
        first, last = self.points[0].redundant, self.points[-1].redundant
        tried = f"R = {first} to {last}" if len(self.points) > 1 else f"R = {first} alone"
        rule = f"the fewest replicas within {TOLERANCE:.0%} of the best predicted step on fitted load"
        return f"R = {self.redundant} was chosen: {rule}; {tried} were tried, {self.floor}; {self.end}"


def redundant_curve(
    problem_of: ProblemOfR,
    least: int,
    gpus: int,
    search: Search,
    held_out_load: LoadProfile | None = None,
    *,
    to_the_end: bool = False,
    most_points: int = MOST_POINTS,
    price: Callable[[Problem], CurvePoint] | None = None,
) -> Curve:
    """A refined plan for each R, a slot more on every GPU each time. Infeasible where not even `least` fits.

    `to_the_end` goes on where nothing is gained any more: one layer may still gain. `price`: what makes a
    point of a problem, in the place of a refined plan over the load's windows. Ctrl-C ends
    the curve with the points that it has; `whole` is for who has no use of those.
    """
    price = price or partial(_point, search=search, held_out_load=held_out_load)
    problem = _first(problem_of, least, gpus, most_points)
    points = [price(problem)]
    end = f"more than {most_points} points are not tried"
    stopped = False
    while len(points) < most_points:
        redundant = problem.redundant + len(points) * problem.gpus
        if search.progress:
            search.progress(len(points) / most_points, f"trying R = {redundant}")
        if not to_the_end and levelled_off(tuple(points)):
            end = f"the last {PATIENCE} gained less than {WORTH:.1%}"
            break
        try:
            more = _next(problem_of, problem, redundant)
            if isinstance(more, str):
                end = more
                break
            points.append(price(more))
        except KeyboardInterrupt:
            stopped, end = True, "Ctrl-C ended the curve"
            break
    return Curve(tuple(points), end, _kept(problem), stopped)


def _kept(problem: Problem) -> str:
    if problem.kv_floor_bytes:
        return f"{problem.kv_floor_bytes / 1e9:g} GB of GPU memory kept free"
    found = ledger(problem, None)
    return f"room kept for {found.planned_requests} requests of {found.context_tokens:,} tokens a GPU"


def _next(problem_of: ProblemOfR, problem: Problem, redundant: int) -> Problem | str:
    """The problem of the next point, or why the curve ends."""
    if redundant > problem.model.experts * (problem.gpus - 1):
        return "every GPU holds every expert then"
    more = _tried(problem_of, redundant)
    return "memory ends there" if isinstance(more, Infeasible) else more


def _first(problem_of: ProblemOfR, least: int, gpus: int, most_points: int) -> Problem:
    """The problem of the fewest redundant experts that it is feasible with; Infeasible, as with the fewest,
    where none of the points is.
    """
    answers = (_tried(problem_of, redundant) for redundant in range(least, least + most_points * gpus, gpus))
    first = next(answers)  # too few, for --resplittable; or too many, and then more are as well
    if isinstance(first, Problem):
        return first
    for answer in answers:
        if isinstance(answer, Problem):
            return answer
    raise first


def _tried(problem_of: ProblemOfR, redundant: int) -> Problem | Infeasible:
    try:
        return problem_of(redundant)
    except Infeasible as refused:
        return refused


def _point(problem: Problem, search: Search, held_out_load: LoadProfile | None) -> CurvePoint:
    searched = in_expectation(problem)
    placement = find_method("refine")(searched, seed=search.seed)
    held_out = cost(searched, placement, held_out_load) if held_out_load else None
    seconds_L = objective_seconds_L(searched, fitted_windows(searched), placement)
    return curve_point(problem, cost(searched, placement), seconds_L, held_out)


def curve_point(
    problem: Problem, fitted: Cost, seconds_L: Floats, held_out: Cost | None = None
) -> CurvePoint:
    """The point of a problem whose placement was priced. `seconds_L`: what R is chosen by."""
    return CurvePoint(
        redundant=problem.redundant,
        slots_per_gpu=problem.slots_per_gpu,
        fitted_seconds_L=seconds_L,
        held_out_seconds_L=held_out.layer_seconds_L if held_out else None,
        max_over_mean=fitted.max_over_mean,
        weights_bytes=problem.slots_per_gpu * problem.slot_bytes,
        free_bytes=float(problem.free_bytes_G.min()),
    )
