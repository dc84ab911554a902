"""Plan: a placement, judged. What it is predicted to cost on fitted and held-out load, beside doing nothing, and how far from the bound it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from planner.bound import Bound, load_bound
from planner.bound_time import PARTS, TimeBound, time_bound
from planner.cost import Cost, cost
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem
from planner.rules import violations

ROUNDING = 1e-12  # a gap below it is none
PROVEN = 1e-9  # a busiest GPU that is closer to its bound is at it


@dataclass(frozen=True, eq=False)
class Baseline:
    """What an engine would do by itself, under the same topology, workload and replica rule."""

    name: str
    redundant: int
    fitted: Cost
    held_out: Cost | None


@dataclass(frozen=True)
class Origin:
    """Where a placement comes from, and what a reader must know of it."""

    engine: str | None = None  # that will run it
    method: str = "given"
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, object] = field(default_factory=dict)


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
    optimal_L: npt.NDArray[np.bool_]  # layers for which no placement has a better objective: every one was ruled out
    baselines: tuple[Baseline, ...]
    origin: Origin

    @property
    def gap(self) -> float:
        """How far the busiest GPUs are above the bound, summed over layers with a signal, as a share of the bound; 0 is proven optimal for balance."""
        told_L = ~self.fitted.silent_L  # a load whose every count is zero is refused when it is read
        gap = float(self.fitted.load_LG[told_L].max(axis=1).sum() / self.bound.load_L[told_L].sum() - 1)
        return 0.0 if abs(gap) < ROUNDING else gap

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
        return {part: float((getattr(self.fitted, f"{part}_seconds_L") - getattr(self.time_bound, f"{part}_seconds_L")).sum()) for part in PARTS}

    @property
    def balanced_L(self) -> npt.NDArray[np.bool_]:
        """Layers whose busiest GPU carries no more than its bound: proven optimal for balance."""
        return np.asarray(self.fitted.load_LG.max(axis=1) <= self.bound.load_L * (1 + PROVEN))

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
) -> Plan:
    """The plan for a placement. A placement that breaks a rule is a bug of the method that made it, and raises.

    `proven_share_L`: bounds that a solver proved for this problem, as shares of each layer's load. `optimal_L`: layers whose row no other can beat.
    """
    broken = violations(problem, placement)
    if broken:
        raise AssertionError(f"method {origin.method} broke the rule '{broken[0].rule}': {broken[0].text}")
    bound = _bound(problem, proven_share_L)
    return Plan(
        problem=problem,
        placement=placement,
        held_out_load=held_out_load,
        fitted=cost(problem, placement),
        held_out=cost(problem, placement, held_out_load) if held_out_load else None,
        bound=bound,
        time_bound=time_bound(problem, peak_load_L=bound.load_L),
        optimal_L=np.zeros(len(bound.load_L), dtype=bool) if optimal_L is None else optimal_L,
        baselines=tuple(_baseline(name, *question, held_out_load) for name, question in (baselines or {}).items()),
        origin=origin,
    )


def _bound(problem: Problem, proven_share_L: npt.NDArray[np.float64] | None) -> Bound:
    found = load_bound(problem.shares_LE, problem.gpus, problem.slots_per_gpu, even=problem.replica_rule == "even")
    share_L, reason_L = found.load_L, found.reason_L
    if proven_share_L is not None:
        reason_L = tuple("CP-SAT" if proven > share * (1 + 1e-9) else reason for proven, share, reason in zip(proven_share_L, share_L, reason_L, strict=True))
        share_L = np.maximum(share_L, proven_share_L)
    return Bound(share_L * problem.workload.tokens_per_rank * problem.gpus * problem.model.top_k, reason_L)


def _baseline(name: str, problem: Problem, placement: Placement, held_out_load: LoadProfile | None) -> Baseline:
    held_out = cost(problem, placement, held_out_load) if held_out_load else None
    return Baseline(name, problem.redundant, cost(problem, placement), held_out)
