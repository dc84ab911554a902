"""Plan: a placement, judged. What it is predicted to cost on fitted and held-out load, beside doing nothing, and how far from the bound it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from planner.bound import Bound, load_bound
from planner.constants import COMBINE, COMPUTE, DISPATCH
from planner.cost import Cost, compute_seconds_G, cost
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem
from planner.rules import violations

ROUNDING = 1e-12  # a gap below it is none


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
        """No placement is predicted to take less: start-up of every phase, and compute at the bound on the busiest GPU of the fastest kind."""
        problem = self.problem
        start = DISPATCH[problem.workload.transport].start_seconds(problem.gpus) + COMBINE[problem.workload.transport].start_seconds(problem.gpus)
        compute_L = [
            float(compute_seconds_G(problem, np.full(problem.gpus, load), np.zeros(problem.gpus)).min()) - COMPUTE.fixed_seconds for load in self.bound.load_L
        ]
        return len(compute_L) * (start + COMPUTE.fixed_seconds) + sum(compute_L)


def judged(
    problem: Problem,
    placement: Placement,
    *,
    proven_share_L: npt.NDArray[np.float64] | None = None,
    held_out_load: LoadProfile | None = None,
    baselines: Mapping[str, tuple[Problem, Placement]] | None = None,
    origin: Origin = Origin(),
) -> Plan:
    """The plan for a placement. A placement that breaks a rule is a bug of the method that made it, and raises.

    `proven_share_L`: bounds that a solver proved for this problem, as shares of each layer's load.
    """
    broken = violations(problem, placement)
    if broken:
        raise AssertionError(f"method {origin.method} broke the rule '{broken[0].rule}': {broken[0].text}")
    return Plan(
        problem=problem,
        placement=placement,
        held_out_load=held_out_load,
        fitted=cost(problem, placement),
        held_out=cost(problem, placement, held_out_load) if held_out_load else None,
        bound=_bound(problem, proven_share_L),
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
