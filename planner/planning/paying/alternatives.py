"""What can be done about an uneven load: one function for each, all judged on the same windows."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from planner.cost import Cost, cost, ledger, perfect_balance
from planner.engines import OnlineBalancer, default_placement
from planner.placement import Placement
from planner.planning.paying.batch import Batch, fitting
from planner.planning.paying.online import Piece, once, play
from planner.planning.paying.rearranging import Rearrangement
from planner.planning.paying.series import Series
from planner.problem import Problem
from planner.solvers import Search, whole_placement

ProblemOfR = Callable[[int], Problem]


@dataclass(frozen=True, eq=False)
class Question:
    """What is compared, looked up: the problem of each R, the windows, and how the engine rebalances."""

    problem_of: ProblemOfR  # with the batch that was asked for
    least: int  # redundant experts without which slots do not divide
    redundant: int
    series: Series
    engine: str | None
    balancer: OnlineBalancer
    search: Search
    stall_seconds: float | None = None  # of a rearrangement, measured

    def batch(self, redundant: int, buffer_bytes: float = 0.0) -> Batch:
        """The question with R redundant experts and the batch that fits beside them."""
        return fitting(self.problem_of(redundant), self.engine, buffer_bytes)


@dataclass(frozen=True, eq=False)
class Alternative:
    """One thing to do: the steps that it serves the judged windows with, and what it takes besides.

    `pause_seconds`: of moving weights, shared out over the steps. `buffer_bytes`: of each GPU, for weights on
    their way.
    """

    name: str
    batch: Batch
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
    batch = question.batch(question.least)
    return _fixed("default", batch, default_placement(question.engine, batch.problem), question.series)


def permutation(question: Question) -> Alternative:
    """No replicas: experts in other places."""
    return _planned("permutation", question, question.least)


def static(question: Question) -> Alternative:
    """The plan that `solve` makes, for all of the judged windows."""
    return _planned("static plan", question, question.redundant)


def balanced_once(question: Question) -> Alternative:
    """The map that the engine's balancer makes of the fitted windows, kept."""
    batch = question.batch(question.redundant)
    placement = once(batch.problem, question.series, question.balancer, question.search.seed)
    return _fixed("EPLB once", batch, placement, question.series)


def online(question: Question) -> tuple[Alternative, Alternative]:
    """The engine's balancer as it goes on while it serves: the server waits for the weights, or does not.

    Without a wait the weights are on the links that dispatch uses, and a step waits at most as long as they
    do at full rate.
    """
    asked, balancer = question.problem_of(question.redundant), question.balancer
    seed, stall = question.search.seed, question.stall_seconds
    counted = any(
        line.name == "transfer" and line.size_bytes for line in ledger(asked, question.engine).lines
    )
    buffer = 0.0 if counted else asked.slots_per_gpu * asked.model.expert_bytes  # one layer, on its way
    batch = question.batch(question.redundant, buffer)
    first = default_placement(question.engine, batch.problem)
    played = play(batch.problem, question.series, balancer, first, stall, seed)
    found, interval = played.rearrangement, balancer.interval_steps
    waits = Alternative(
        "EPLB, stops",
        batch,
        played.pieces,
        found.stall_seconds / interval,
        buffer,
        rearrangement=found,
        rearranged=played.rearranged,
    )
    return waits, replace(waits, name="EPLB, async", pause_seconds=found.link_seconds / interval)


def perfect(question: Question) -> Alternative:
    """Every GPU gets as much in every layer of every step (MoonEP)."""
    asked, series = question.problem_of(question.least), question.series
    home = default_placement(question.engine, asked)
    needed = max(perfect_balance(asked, home, load).buffer_experts for load in series.judged)
    buffer = needed * asked.model.expert_bytes
    batch = question.batch(question.least, buffer)
    problem = batch.problem
    found = [perfect_balance(problem, home, load) for load in series.judged]
    pieces = tuple(Piece(steps, one.cost) for steps, one in zip(series.steps_J.tolist(), found, strict=True))
    fetched = float(np.average([one.fetched for one in found], weights=series.steps_J))
    seconds = float(np.average([one.fetch_seconds for one in found], weights=series.steps_J))
    note = f"fetches {fetched:.0f} experts a step"
    return Alternative("perfect", batch, pieces, seconds, buffer, note=note)


def _planned(name: str, question: Question, redundant: int) -> Alternative:
    batch = question.batch(redundant)
    return _fixed(name, batch, whole_placement(batch.problem, question.search), question.series)


def _fixed(name: str, batch: Batch, placement: Placement, series: Series) -> Alternative:
    """One placement for all judged windows."""
    judged = zip(series.steps_J.tolist(), series.judged, strict=True)
    pieces = tuple(Piece(steps, cost(batch.problem, placement, load)) for steps, load in judged)
    return Alternative(name, batch, pieces)
