"""One look at the rolling window: the load as it is now, a plan for it near the one that runs, and a verdict.

Shapes: W windows, L layers, E experts.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
import numpy.typing as npt

import planner
from planner.base import BadInput
from planner.cost import Cost, cost, whole_step
from planner.engines import REARRANGED_BYTES_PER_S
from planner.load import LoadProfile, load_of_counts, merge_windows
from planner.placement import Placement
from planner.plan import PREVIOUS, Moves, Origin, Plan, SavedPlan
from planner.planning import make_plan, parse_moves
from planner.problem import Objective, Problem
from planner.solvers import CurrentPlacement, Search, Workforce, find_method
from planner.watching.ledger import Swap
from planner.watching.parted import parted
from planner.watching.regime import present_from
from planner.watching.verdict import DOUBTED, Terms, Verdict, trust

MOST_WINDOWS = 8  # that a plan is fitted to, neighbours summed

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Asked:
    """How to plan anew, and when it pays."""

    most_moves: str = "10%"
    method: str = "greedy"
    seed: int = 0
    workers: int | None = 1
    terms: Terms = field(default_factory=Terms)


@dataclass(frozen=True, eq=False)
class Rolling:
    """The rolling window as it stands. `numbers`: of its windows, counted from the first that ever came."""

    tokens_WLE: Counts
    layer_ids: tuple[int, ...]
    numbers: tuple[int, ...]

    def load(self, first: int, problem: Problem) -> LoadProfile:
        """The windows from the one at place `first`, a row for every layer of the plan."""
        source = f"live, windows {self.numbers[first]} to {self.numbers[-1]}"
        found = load_of_counts(self.tokens_WLE[first:], self.layer_ids, problem.model, source)
        return merge_windows(found, MOST_WINDOWS)


@dataclass(frozen=True, eq=False)
class Look:
    """What was seen and what follows. `present`: the number of the first window of the load as it is now."""

    plan: Plan
    verdict: Verdict
    present: int
    fitted_windows: int
    running_max_over_mean: float  # under the plan that runs, on the judged assignments


def look(saved: SavedPlan, where: str, rolling: Rolling, swaps: Sequence[Swap], asked: Asked) -> Look:
    """A plan within the moves allowed, fitted to the load as it is now, and whether it pays.

    Where earlier swaps kept little of their promises, it is fitted to the whole rolling window.
    """
    present = present_from(rolling.tokens_WLE)
    known = trust(swaps, rolling.numbers[0], _last_promise(swaps))
    first = 0 if known < DOUBTED else present
    fitted, judged = parted(rolling.load(first, saved.problem), seed=asked.seed)
    plan = _replanned(saved, where, fitted, judged, asked)
    found = _verdict(plan, saved, swaps, rolling.numbers[0], asked.terms)
    balance = _running(plan).max_over_mean
    return Look(plan, found, rolling.numbers[present], len(rolling.numbers) - first, balance)


def kept_seconds(saved: SavedPlan, before: Placement, rolling: Rolling, after: int) -> float | None:
    """What a step has taken less than by the placement `before`, on the windows after that number."""
    since = [place for place, number in enumerate(rolling.numbers) if number > after]
    if not since:
        return None
    problem = saved.problem
    load = rolling.load(since[0], problem)
    return cost(problem, before, load).total_seconds - cost(problem, saved.placement, load).total_seconds


def check_asked(asked: Asked, problem: Problem) -> None:
    """BadInput where what was asked can never be: told at once, not round after round."""
    parse_moves(asked.most_moves, problem.slots * len(problem.model.placed_layer_ids))
    find_method(asked.method)
    Search(asked.method, asked.seed)
    for flag, value in (
        ("--horizon", asked.terms.horizon_seconds),
        ("--stall", asked.terms.stall_seconds),
        ("--restart", asked.terms.restart_seconds),
    ):
        if value is not None and not 0 <= value < inf:
            raise BadInput(f"{flag} {value:g}: give seconds, 0 or more")


def check_replannable(saved: SavedPlan, where: str) -> None:
    """BadInput where a plan makes a promise that a re-plan within few moves cannot keep."""
    for asked, flag in ((saved.problem.survive, "--survive"), (saved.problem.resplittable, "--resplittable")):
        if asked:
            raise BadInput(
                f"{where}: a re-plan within few moves cannot promise {flag}; watch a plan without it"
            )


def _replanned(saved: SavedPlan, where: str, fitted: LoadProfile, judged: LoadProfile, asked: Asked) -> Plan:
    own = saved.problem.objective
    problem = replace(saved.problem, load=fitted, objective=Objective(own.kind, own.z))
    slots = problem.slots * len(problem.model.placed_layer_ids)
    current = CurrentPlacement(saved.placement, where, parse_moves(asked.most_moves, slots))
    search = Search(asked.method, asked.seed, workforce=Workforce(asked.workers))
    provenance = {
        "moeplan": planner.__version__,
        "method": asked.method,
        "seed": asked.seed,
        "load_source": fitted.source,
        "load_sha256": hashlib.sha256(fitted.tokens_WLE.tobytes()).hexdigest(),
    }
    origin = Origin(saved.value.get("engine"), asked.method, fitted.notes, provenance=provenance)
    plan = make_plan(lambda _: problem, problem.redundant, search, origin, judged, current)
    if plan.origin.stopped:  # whoever watches has no use of half a plan
        raise KeyboardInterrupt
    return plan


def _verdict(plan: Plan, saved: SavedPlan, swaps: Sequence[Swap], oldest: int, terms: Terms) -> Verdict:
    assert plan.moves is not None
    promised = plan.saved_seconds or 0.0
    step = whole_step(plan.problem, _running(plan), saved.value.get("engine")).total_seconds
    known = trust(swaps, oldest, promised)
    swap_seconds, how = _swap(plan.moves, terms)
    steps = terms.horizon_seconds / step
    return Verdict(step, promised, swap_seconds, steps, known, terms.least_gain, how)


def _running(plan: Plan) -> Cost:
    """The cost of what runs, on the judged assignments."""
    found = next(baseline for baseline in plan.baselines if baseline.name == PREVIOUS).held_out
    assert found is not None
    return found


def _swap(moves: Moves, terms: Terms) -> tuple[float, str]:
    """(seconds of a swap, what they are): what nobody is served for; where weights move beside the traffic,
    the time they have the links.
    """
    if terms.restart_seconds is not None:
        return terms.restart_seconds, "a restart, as given"
    if terms.stall_seconds is not None:
        return terms.stall_seconds, "a stall, as given"
    if not terms.stops:
        return moves.seconds, "of the links, predicted"
    stall = max(moves.seconds, moves.most_received_bytes / REARRANGED_BYTES_PER_S)
    return stall, "a stall, predicted; no restart"


def _last_promise(swaps: Sequence[Swap]) -> float:
    return swaps[-1].promised if swaps else 0.0
