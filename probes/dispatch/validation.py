"""From a plan to a dispatch run and its outcome, beside what the cost model had said.

Here it is chosen which layers are run, and under which shares.

Shapes: L layers that are run, P slots.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.cost import Cost, cost, units
from planner.placement import Placement
from planner.problem import Problem
from planner.replica import find_rule
from probes.dispatch.job import DispatchJob
from probes.dispatch.report import DispatchReport
from probes.dispatch.run import run
from probes.dispatch.seen import PHASES


@dataclass(frozen=True)
class Settings:
    """How to run: `layers` None means all; `hidden` None means 64 on a CPU, the model's own width on GPUs."""

    layers: int | None = 4
    tokens: int = 64
    hidden: int | None = None
    repeats: int = 5
    seed: int = 0
    timeout_seconds: float = 120.0
    device: str = "auto"  # auto, cpu, cuda


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the run measured, and what was predicted for the same layers and token count.

    `predicted_seconds` are by side (plan, baseline) and phase, over the layers that were run.
    """

    report: DispatchReport
    predicted_seconds: Mapping[str, Mapping[str, float]]

    @property
    def ok(self) -> bool:
        return self.report.ok

    @property
    def failed(self) -> list[str]:
        failed = [check for check in self.report.checks if not check.ok]
        return [f"check '{check.name}' failed: {check.detail}" for check in failed]

    @property
    def measured_seconds(self) -> dict[str, dict[str, float]]:
        return {
            side: {phase: float(phases[phase].sum()) for phase in PHASES}
            for side, phases in self.report.seconds_L.items()
        }

    def to_dict(self) -> dict[str, Any]:
        report = self.report
        return {
            "ok": self.ok,
            "device": report.device,
            "layers": list(report.layer_ids),
            "checks": [asdict(check) for check in report.checks],
            "measured_seconds": self.measured_seconds,
            "predicted_seconds": {side: dict(phases) for side, phases in self.predicted_seconds.items()},
            "dispatch_bytes": {side: bytes_GG.tolist() for side, bytes_GG in report.bytes_GG.items()},
            "notes": list(report.notes),
        }


def validate(problem: Problem, placement: Placement, baseline: Placement, settings: Settings) -> Outcome:
    """Run the busiest layers of the plan and, interleaved, of the baseline.

    BadInput where it cannot be run here; RunFailed where a rank fails.
    """
    problem = replace(problem, workload=replace(problem.workload, tokens_per_rank=settings.tokens))
    costs = {"plan": cost(problem, placement), "baseline": cost(problem, baseline)}
    rows = _busiest(costs["plan"], settings.layers)
    report = run(_job(problem, placement, baseline, rows, settings))
    return Outcome(report, {side: _phase_seconds(found, rows) for side, found in costs.items()})


def _job(
    problem: Problem, placement: Placement, baseline: Placement, rows: list[int], settings: Settings
) -> DispatchJob:
    model = problem.model
    return DispatchJob(
        expert_LP=placement.expert_LP[rows],
        share_LSP=_shares_LSP(problem, placement, rows),
        baseline_expert_LP=baseline.expert_LP[rows],
        baseline_share_LSP=_shares_LSP(problem, baseline, rows),
        layer_ids=tuple(placement.layer_ids[row] for row in rows),
        experts=model.experts,
        top_k=model.top_k,
        dispatch_width=model.dispatch_width,
        shares_LE=problem.shares_LE[rows],
        node_G=units(problem),
        transport=problem.workload.transport,
        replica_rule=problem.replica_rule,
        hidden=settings.hidden,
        tokens_per_rank=settings.tokens,
        repeats=settings.repeats,
        seed=settings.seed,
        timeout_seconds=settings.timeout_seconds,
        device=settings.device,
    )


def _busiest(found: Cost, layers: int | None) -> list[int]:
    """Rows of the layers with the busiest GPUs, in layer order; ties go to the lower layer."""
    if layers is not None and layers < 1:
        raise BadInput(f"--layers {layers}: run at least one layer, or all")
    order = np.argsort(-found.max_over_mean_L.round(12), kind="stable")
    return sorted(order[:layers].tolist())


def _shares_LSP(problem: Problem, placement: Placement, rows: list[int]) -> npt.NDArray[np.float64]:
    shares = list(find_rule(problem.replica_rule)(placement, problem.situation()))
    return np.stack([shares[row] for row in rows])


def _phase_seconds(found: Cost, rows: list[int]) -> dict[str, float]:
    seconds = {
        "dispatch": found.dispatch_seconds_L,
        "compute": found.compute_seconds_L,
        "combine": found.combine_seconds_L,
    }
    return {phase: float(seconds_L[rows].sum()) for phase, seconds_L in seconds.items()}
