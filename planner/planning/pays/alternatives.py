"""What can be done about an uneven load: one function for each, all judged on the same windows."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from planner.cost import Cost, cost, perfect_balance
from planner.engines import OnlineBalancer, default_placement
from planner.placement import Placement
from planner.planning.pays.online import Piece, Played, once, play
from planner.planning.pays.rearranging import Rearrangement
from planner.planning.pays.series import Series
from planner.problem import Problem
from planner.solvers import Search, find_placement

ProblemOfR = Callable[[int], Problem]


@dataclass(frozen=True, eq=False)
class Question:
    """What is compared, looked up: the problem of each R, the windows, and how the engine rebalances."""

    problem_of: ProblemOfR  # with the batch that fits
    least: int  # redundant experts without which slots do not divide
    redundant: int
    series: Series
    engine: str | None
    balancer: OnlineBalancer
    search: Search
    stall_seconds: float | None = None  # of a rearrangement, measured


@dataclass(frozen=True, eq=False)
class Alternative:
    """One thing to do: the steps that it serves the judged windows with, and what it takes besides.

    `pause_seconds`: of moving weights, shared out over the steps. `buffer_bytes`: of each GPU, for weights on
    their way.
    """

    name: str
    problem: Problem
    pieces: tuple[Piece, ...]
    pause_seconds: float = 0.0
    buffer_bytes: float = 0.0
    rearrangement: Rearrangement | None = None
    rearranged: int = 0  # how often within the judged windows
    note: str = ""

    def mean(self, of: Callable[[Cost], float]) -> float:
        """The mean over steps of a figure of their costs."""
        weights = [piece.steps for piece in self.pieces]
        return float(np.average([of(piece.cost) for piece in self.pieces], weights=weights))


def default(question: Question) -> Alternative:
    """Doing nothing: the engine's own list, no more slots than it needs."""
    problem = question.problem_of(question.least)
    return _fixed("default", problem, default_placement(question.engine, problem), question.series)


def permutation(question: Question) -> Alternative:
    """No replicas: experts in other places."""
    return _planned("permutation", question, question.least)


def static(question: Question) -> Alternative:
    """The plan that `solve` makes, for all of the judged windows."""
    return _planned("static plan", question, question.redundant)


def balanced_once(question: Question) -> Alternative:
    """The map that the engine's balancer makes of the fitted windows, kept."""
    problem = question.problem_of(question.redundant)
    placement = once(problem, question.series, question.balancer, question.search.seed)
    return _fixed("EPLB once", problem, placement, question.series)


def online(question: Question) -> tuple[Alternative, Alternative]:
    """The engine's balancer as it goes on while it serves: the server waits for the weights, or does not.

    Without a wait the weights are on the links that dispatch uses, and a step waits at most as long as they
    do at full rate.
    """
    problem, balancer = question.problem_of(question.redundant), question.balancer
    seed, stall = question.search.seed, question.stall_seconds
    first = default_placement(question.engine, problem)
    played = play(problem, question.series, balancer, first, stall, seed)
    layer_bytes = problem.slots_per_gpu * problem.model.expert_bytes
    waits = _rearranged("EPLB, stops", problem, played, played.rearrangement.stall_seconds, balancer)
    flows = _rearranged("EPLB, async", problem, played, played.rearrangement.link_seconds, balancer)
    return replace(waits, buffer_bytes=layer_bytes), replace(flows, buffer_bytes=layer_bytes)


def perfect(question: Question) -> Alternative:
    """Every GPU gets as much in every layer of every step (MoonEP)."""
    problem, series = question.problem_of(question.least), question.series
    home = default_placement(question.engine, problem)
    found = [perfect_balance(problem, home, load) for load in series.judged]
    pieces = tuple(Piece(steps, one.cost) for steps, one in zip(series.steps_J.tolist(), found, strict=True))
    fetched = float(np.average([one.fetched for one in found], weights=series.steps_J))
    seconds = float(np.average([one.fetch_seconds for one in found], weights=series.steps_J))
    buffer = max(one.buffer_experts for one in found) * problem.model.expert_bytes
    note = f"fetches {fetched:.0f} experts a step"
    return Alternative("perfect", problem, pieces, seconds, buffer, note=note)


def _planned(name: str, question: Question, redundant: int) -> Alternative:
    problem = question.problem_of(redundant)
    return _fixed(name, problem, find_placement(problem, question.search).placement, question.series)


def _fixed(name: str, problem: Problem, placement: Placement, series: Series) -> Alternative:
    """One placement for all judged windows."""
    judged = zip(series.steps_J.tolist(), series.judged, strict=True)
    pieces = tuple(Piece(steps, cost(problem, placement, load)) for steps, load in judged)
    return Alternative(name, problem, pieces)


def _rearranged(
    name: str, problem: Problem, played: Played, seconds: float, balancer: OnlineBalancer
) -> Alternative:
    pause = seconds / balancer.interval_steps
    moved, count = played.rearrangement, played.rearranged
    return Alternative(name, problem, played.pieces, pause, rearrangement=moved, rearranged=count)
