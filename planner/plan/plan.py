"""Plan: a placement, judged. What it is predicted to cost on fitted and held-out load, beside doing nothing, and how far from the bound it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from planner.bounds import PARTS, Bound, TimeBound, load_bound, time_bound
from planner.cost import AfterLoss, Cost, CurvePoint, after_loss, cost, objective_seconds_L, windows_of
from planner.load import LoadProfile
from planner.placement import Placement
from planner.plan.moves import Moves
from planner.problem import Problem, Survival, survives, violations

ROUNDING = 1e-12  # a gap below it is none
PREVIOUS = "previous plan"  # the baseline that a re-plan moves away from
PROVEN = 1e-9  # a busiest GPU that is closer to its bound is at it


@dataclass(frozen=True, eq=False)
class Baseline:
    """What an engine would do by itself, under the same topology, workload and replica rule."""

    name: str
    redundant: int
    fitted: Cost
    held_out: Cost | None
    survives: bool = True  # the losses that the problem asks to survive


@dataclass(frozen=True, eq=False)
class Domain:
    """What the placement costs on one domain of the load; None where it has no window fitted, or none held out. Objectives in seconds a step."""

    name: str
    fitted_windows: int
    fitted: Cost | None
    fitted_objective_seconds: float | None
    held_out_windows: int
    held_out: Cost | None
    held_out_objective_seconds: float | None


@dataclass(frozen=True)
class Origin:
    """Where a placement comes from, and what a reader must know of it."""

    engine: str | None = None  # that will run it
    method: str = "given"
    notes: tuple[str, ...] = ()
    curve: tuple[CurvePoint, ...] = ()  # over R, where R was chosen and not given
    provenance: Mapping[str, object] = field(default_factory=dict)
    stopped: bool = False  # by Ctrl-C, before the search was over: the notes say when


@dataclass(frozen=True, eq=False)
class Plan:
    """The answer to a problem. `bound` is in assignments per step, like the loads of `fitted`."""

    problem: Problem
    placement: Placement
    held_out_load: LoadProfile | None
    fitted: Cost
    held_out: Cost | None
    bound: Bound
    time_bound: TimeBound
    optimal_L: npt.NDArray[
        np.bool_
    ]  # layers for which no placement has a better objective: every one was ruled out
    baselines: tuple[Baseline, ...]
    origin: Origin
    fitted_objective_seconds: float  # a step; what the search made small
    held_out_objective_seconds: float | None
    domains: tuple[Domain, ...]  # apart; empty where the load is one series
    after_loss: AfterLoss | None = None  # where the problem asks to survive losses
    moves: Moves | None = None  # where this is a re-plan of a placement that runs

    @property
    def gap(self) -> float:
        """How far the busiest GPUs are above the bound, summed over layers with a signal, as a share of the bound; 0 is proven optimal for balance."""
        told_L = ~self.fitted.silent_L  # a load whose every count is zero is refused when it is read
        gap = float(self.fitted.busy_LG[told_L].max(axis=1).sum() / self.bound.load_L[told_L].sum() - 1)
        return 0.0 if abs(gap) < ROUNDING else gap

    @property
    def saved_seconds(self) -> float | None:
        """What a step takes less than under the previous plan, on held-out load where there is some; None where there is no previous plan."""
        before = next((baseline for baseline in self.baselines if baseline.name == PREVIOUS), None)
        if before is None:
            return None
        return (before.held_out or before.fitted).total_seconds - (self.held_out or self.fitted).total_seconds

    @property
    def bound_seconds(self) -> float:
        """No placement is predicted to take less on the fitted load."""
        return self.time_bound.total_seconds

    @property
    def gap_seconds_share(self) -> float:
        """How far the fitted step is above the bound in seconds, as a share of the bound. It may lie in the plan or in the bound."""
        return self.fitted.total_seconds / self.bound_seconds - 1

    @property
    def gap_seconds(self) -> dict[str, float]:
        """Seconds above the bound, by part of the step."""
        return {
            part: float(
                (
                    getattr(self.fitted, f"{part}_seconds_L") - getattr(self.time_bound, f"{part}_seconds_L")
                ).sum()
            )
            for part in PARTS
        }

    @property
    def balanced_L(self) -> npt.NDArray[np.bool_]:
        """Layers whose busiest GPU carries no more than its bound: proven optimal for balance."""
        return np.asarray(self.fitted.busy_LG.max(axis=1) <= self.bound.load_L * (1 + PROVEN))

    @property
    def fastest_L(self) -> npt.NDArray[np.bool_]:
        """Layers that take no longer on the fitted load than their bound in seconds: no placement is predicted faster there."""
        return np.asarray(self.fitted.layer_seconds_L <= self.time_bound.layer_seconds_L * (1 + PROVEN))


def judged(
    problem: Problem,
    placement: Placement,
    *,
    proven_share_L: npt.NDArray[np.float64] | None = None,
    optimal_L: npt.NDArray[np.bool_] | None = None,
    held_out_load: LoadProfile | None = None,
    baselines: Mapping[str, tuple[Problem, Placement]] | None = None,
    origin: Origin = Origin(),
    moves: Moves | None = None,
) -> Plan:
    """The plan for a placement. A placement that breaks a rule is a bug of the method that made it, and raises.

    `proven_share_L`: bounds that a solver proved for this problem, as shares of each layer's load. `optimal_L`: layers whose row no other can beat.
    """
    broken = violations(problem, placement)
    if broken:
        raise AssertionError(f"method {origin.method} broke the rule '{broken[0].rule}': {broken[0].text}")
    fitted = cost(problem, placement)
    held_out = cost(problem, placement, held_out_load) if held_out_load else None
    bound = _bound(problem, proven_share_L)
    return Plan(
        problem=problem,
        placement=placement,
        held_out_load=held_out_load,
        fitted=fitted,
        held_out=held_out,
        bound=bound,
        time_bound=time_bound(problem, peak_load_L=bound.load_L),
        optimal_L=np.zeros(len(bound.load_L), dtype=bool) if optimal_L is None else optimal_L,
        baselines=tuple(
            _baseline(name, *question, held_out_load, problem.survive)
            for name, question in (baselines or {}).items()
        ),
        origin=origin,
        fitted_objective_seconds=_objective_seconds(problem, placement, problem.load, fitted),
        held_out_objective_seconds=_objective_seconds(problem, placement, held_out_load, held_out)
        if held_out_load and held_out
        else None,
        domains=tuple(
            _domain(name, problem, placement, held_out_load)
            for name in _domain_names(problem.load, held_out_load)
        ),
        after_loss=after_loss(problem, placement, problem.survive, held_out_load)
        if problem.survive
        else None,
        moves=moves,
    )


def _objective_seconds(problem: Problem, placement: Placement, load: LoadProfile, found: Cost) -> float:
    """`found` is the cost on the whole load, which one window is."""
    windows = windows_of(problem, load)
    return (
        found.total_seconds
        if len(windows.loads) == 1
        else float(objective_seconds_L(problem, windows, placement).sum())
    )


def _domain_names(fitted: LoadProfile, held_out: LoadProfile | None) -> tuple[str, ...]:
    names = tuple(dict.fromkeys((*fitted.domains, *(held_out.domains if held_out else ()))))
    return names if len(names) > 1 else ()


def _domain(name: str, problem: Problem, placement: Placement, held_out_load: LoadProfile | None) -> Domain:
    def figures(load: LoadProfile | None) -> tuple[int, Cost | None, float | None]:
        own = load.of_domain(name) if load else None
        if own is None:
            return 0, None, None
        found = cost(problem, placement, own)
        return own.windows, found, _objective_seconds(problem, placement, own, found)

    return Domain(name, *figures(problem.load), *figures(held_out_load))


def _bound(problem: Problem, proven_share_L: npt.NDArray[np.float64] | None) -> Bound:
    found = load_bound(
        problem.shares_LE,
        problem.gpus,
        problem.slots_per_gpu,
        even=problem.replica_rule == "even",
        speed_G=problem.speed_G,
    )
    share_L, reason_L = found.load_L, found.reason_L
    if proven_share_L is not None:
        reason_L = tuple(
            "CP-SAT" if proven > share * (1 + 1e-9) else reason
            for proven, share, reason in zip(proven_share_L, share_L, reason_L, strict=True)
        )
        share_L = np.maximum(share_L, proven_share_L)
    return Bound(share_L * problem.workload.tokens_per_rank * problem.gpus * problem.model.top_k, reason_L)


def _baseline(
    name: str,
    problem: Problem,
    placement: Placement,
    held_out_load: LoadProfile | None,
    survive: Survival | None,
) -> Baseline:
    held_out = cost(problem, placement, held_out_load) if held_out_load else None
    return Baseline(
        name,
        problem.redundant,
        cost(problem, placement),
        held_out,
        survive is None or survives(survive, problem, placement),
    )
