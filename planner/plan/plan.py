"""Plan: a placement, judged.

What it is predicted to cost on fitted and held-out load, beside doing nothing, and how far from the bound it
is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from planner.bounds import PARTS, Bound, TimeBound
from planner.cost import AfterLoss, Cost, CurvePoint
from planner.load import LoadProfile
from planner.placement import Placement
from planner.plan.moves import Moves
from planner.problem import Problem

ROUNDING = 1e-12  # a gap below it is none
PREVIOUS = "previous plan"  # the baseline that a re-plan moves away from
REFILLED = "what is left, refilled"  # the baseline of a plan for GPUs of which some were lost or are new
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
    """What the placement costs on one domain of the load; None where it has no window fitted, or none held
    out. Objectives in seconds a step.
    """

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
    optimal_L: npt.NDArray[np.bool_]  # no placement of the layer has a better objective: all were ruled out
    baselines: tuple[Baseline, ...]
    origin: Origin
    fitted_objective_seconds: float  # a step; what the search made small
    held_out_objective_seconds: float | None
    domains: tuple[Domain, ...]  # apart; empty where the load is one series
    after_loss: AfterLoss | None = None  # where the problem asks to survive losses
    moves: Moves | None = None  # where this is a re-plan of a placement that runs

    @property
    def gap(self) -> float:
        """How far the busiest GPUs are above the bound, summed over layers with a signal, as a share of the
        bound; 0 is proven optimal for balance.
        """
        told_L = ~self.fitted.silent_L  # a load whose every count is zero is refused when it is read
        gap = float(self.fitted.busy_LG[told_L].max(axis=1).sum() / self.bound.load_L[told_L].sum() - 1)
        return 0.0 if abs(gap) < ROUNDING else gap

    @property
    def saved_seconds(self) -> float | None:
        """What a step takes less than under the previous plan, on held-out load where there is some; None
        where there is no previous plan.
        """
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
        """How far the fitted step is above the bound in seconds, as a share of the bound.

        It may lie in the plan or in the bound.
        """
        return self.fitted.total_seconds / self.bound_seconds - 1

    @property
    def gap_seconds(self) -> dict[str, float]:
        """Seconds above the bound, by part of the step."""
        names = {part: f"{part}_seconds_L" for part in PARTS}
        return {
            part: float((getattr(self.fitted, name) - getattr(self.time_bound, name)).sum())
            for part, name in names.items()
        }

    @property
    def balanced_L(self) -> npt.NDArray[np.bool_]:
        """Layers whose busiest GPU carries no more than its bound: proven optimal for balance."""
        return np.asarray(self.fitted.busy_LG.max(axis=1) <= self.bound.load_L * (1 + PROVEN))

    @property
    def fastest_L(self) -> npt.NDArray[np.bool_]:
        """Layers that take no longer on the fitted load than their bound in seconds: no placement is
        predicted faster there.
        """
        return np.asarray(self.fitted.layer_seconds_L <= self.time_bound.layer_seconds_L * (1 + PROVEN))
