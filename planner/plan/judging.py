"""Judging: a placement made into a plan, with its costs, its bounds and what it is held against."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.bounds import Bound, load_bound, time_bound
from planner.cost import AfterLoss, Cost, after_loss, cost, objective_seconds_L, windows_of
from planner.load import LoadProfile
from planner.placement import Placement
from planner.plan.moves import Moves
from planner.plan.plan import Baseline, Domain, Origin, Plan
from planner.problem import Problem, Survival, survives, violations

GIVEN = Origin()


def judged(
    problem: Problem,
    placement: Placement,
    *,
    proven_share_L: npt.NDArray[np.float64] | None = None,
    optimal_L: npt.NDArray[np.bool_] | None = None,
    held_out_load: LoadProfile | None = None,
    baselines: Mapping[str, tuple[Problem, Placement]] | None = None,
    origin: Origin = GIVEN,
    moves: Moves | None = None,
) -> Plan:
    """The plan for a placement.

    A placement that breaks a rule is a bug of the method that made it, and raises. `proven_share_L`: bounds
    that a solver proved for this problem, as shares of each layer's load. `optimal_L`: layers whose row no
    other can beat.
    """
    _assert_valid(problem, placement, origin)
    fitted = _on(problem, placement, problem.load)
    held_out = _on(problem, placement, held_out_load) if held_out_load else None
    survive, bound = problem.survive, _bound(problem, proven_share_L)
    compared = (baselines or {}).items()
    return Plan(
        problem=problem,
        placement=placement,
        held_out_load=held_out_load,
        fitted=fitted.cost,
        held_out=held_out.cost if held_out else None,
        bound=bound,
        time_bound=time_bound(problem, peak_load_L=bound.load_L),
        optimal_L=np.zeros(len(bound.load_L), dtype=bool) if optimal_L is None else optimal_L,
        baselines=tuple(_baseline(name, *one, held_out_load, survive) for name, one in compared),
        origin=origin,
        fitted_objective_seconds=fitted.objective_seconds,
        held_out_objective_seconds=held_out.objective_seconds if held_out else None,
        domains=_domains(problem, placement, held_out_load),
        after_loss=_after_loss(problem, placement, held_out_load, origin),
        moves=moves,
    )


def _assert_valid(problem: Problem, placement: Placement, origin: Origin) -> None:
    broken = violations(problem, placement)
    if broken:
        raise AssertionError(f"method {origin.method} broke the rule '{broken[0].rule}': {broken[0].text}")


def _after_loss(
    problem: Problem, placement: Placement, load: LoadProfile | None, origin: Origin
) -> AfterLoss | None:
    """Where the problem asks to survive losses."""
    if problem.survive is None:
        return None
    return after_loss(problem, placement, problem.survive, load, origin.engine)


class _Figures(NamedTuple):
    """Of a placement on one load."""

    cost: Cost
    objective_seconds: float


def _on(problem: Problem, placement: Placement, load: LoadProfile) -> _Figures:
    found, windows = cost(problem, placement, load), windows_of(problem, load)
    if len(windows.loads) == 1:  # which is the whole load
        return _Figures(found, found.total_seconds)
    return _Figures(found, float(objective_seconds_L(problem, windows, placement).sum()))


def _domains(problem: Problem, placement: Placement, held_out: LoadProfile | None) -> tuple[Domain, ...]:
    """Each domain of the load apart, where there are several."""

    def side(load: LoadProfile | None, name: str) -> tuple[int, Cost | None, float | None]:
        own = load.of_domain(name) if load else None
        return (own.windows, *_on(problem, placement, own)) if own else (0, None, None)

    names = dict.fromkeys((*problem.load.domains, *(held_out.domains if held_out else ())))
    if len(names) < 2:
        return ()
    return tuple(Domain(name, *side(problem.load, name), *side(held_out, name)) for name in names)


def _bound(problem: Problem, proven_share_L: npt.NDArray[np.float64] | None) -> Bound:
    gpus, even = problem.gpus, problem.replica_rule == "even"
    found = load_bound(problem.shares_LE, gpus, problem.slots_per_gpu, even=even, speed_G=problem.speed_G)
    share_L, reason_L = found.load_L, found.reason_L
    if proven_share_L is not None:
        reason_L = tuple(
            "CP-SAT" if proven > share * (1 + 1e-9) else reason
            for proven, share, reason in zip(proven_share_L, share_L, reason_L, strict=True)
        )
        share_L = np.maximum(share_L, proven_share_L)
    return Bound(share_L * problem.workload.tokens_per_rank * gpus * problem.model.top_k, reason_L)


def _baseline(
    name: str,
    problem: Problem,
    placement: Placement,
    held_out_load: LoadProfile | None,
    survive: Survival | None,
) -> Baseline:
    fitted = cost(problem, placement)
    held_out = cost(problem, placement, held_out_load) if held_out_load else None
    kept = survive is None or survives(survive, problem, placement)
    return Baseline(name, problem.redundant, fitted, held_out, kept)
