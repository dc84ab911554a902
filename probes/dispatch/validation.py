"""From a plan to a dispatch run and its outcome, beside what the cost model says of the same run.

Here it is chosen which layers are run, and under which shares.

Shapes: L layers that are run, P slots.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from planner.base import BadInput
from planner.cost import Cost, cost, units
from planner.placement import Placement
from planner.problem import Problem
from planner.replica import find_rule
from probes.dispatch.expected import Expectation
from probes.dispatch.job import PLAN, DispatchJob, Side
from probes.dispatch.report import DispatchReport, judge
from probes.dispatch.run import run
from probes.dispatch.seen import PHASES
from probes.dispatch.timed import Timed


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
class Contender:
    """A placement, and the question that it answers: all of a run share model, load and machine."""

    problem: Problem
    placement: Placement


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the run measured, and what was predicted for the same layers, token count and width."""

    report: DispatchReport
    timed: tuple[Timed, ...]  # side by side for each row

    @property
    def ok(self) -> bool:
        return self.report.ok

    @property
    def failed(self) -> list[str]:
        failed = [check for check in self.report.checks if not check.ok]
        return [f"check '{check.name}' failed: {check.detail}" for check in failed]

    @property
    def measured_seconds(self) -> dict[str, dict[str, float]]:
        """By side and phase, over the layers that were run."""
        return {
            side: {phase: float(phases[phase].sum()) for phase in PHASES}
            for side, phases in self.report.seconds_L.items()
        }

    @property
    def predicted_seconds(self) -> dict[str, dict[str, float]]:
        """By expectation, like `measured_seconds`."""
        sides = {side: [one.expected for one in self.timed if one.side == side] for side in self.report.cells}
        return {
            side: {phase: sum(one.modelled[phase] for one in found) for phase in PHASES}
            for side, found in sides.items()
        }

    def to_dict(self) -> dict[str, Any]:
        report = self.report
        return {
            "ok": self.ok,
            "device": report.device,
            "layers": list(report.layer_ids),
            "checks": [asdict(check) for check in report.checks],
            "measured_seconds": self.measured_seconds,
            "predicted_seconds": self.predicted_seconds,
            "dispatch_bytes": {side: bytes_GG.tolist() for side, bytes_GG in report.bytes_GG.items()},
            "notes": list(report.notes),
        }


def validate(contenders: Mapping[str, Contender], settings: Settings) -> Outcome:
    """Run the busiest layers of the plan and, interleaved, of what it is held against (`default`, ...).

    BadInput where it cannot be run here; RunFailed where a rank fails.
    """
    asked = {name: _at_tokens(one, settings.tokens) for name, one in contenders.items()}
    plan = asked[PLAN]
    rows = busiest(cost(plan.problem, plan.placement), settings.layers)
    found = run(_job(asked, rows, settings))
    report = judge(found)
    expectations = {name: _expectation(found.job, one, rows) for name, one in asked.items()}
    timed = tuple(
        Timed(
            side,
            layer_id,
            row,
            {phase: report.cells[side][row].seconds_GN(phase) for phase in PHASES},
            expectations[side].of(row, report.cells[side][row].predicted),
        )
        for row, layer_id in enumerate(report.layer_ids)
        for side in report.cells
    )
    return Outcome(report, timed)


def _at_tokens(one: Contender, tokens: int) -> Contender:
    workload = replace(one.problem.workload, tokens_per_rank=tokens)
    return replace(one, problem=replace(one.problem, workload=workload))


def _expectation(job: DispatchJob, one: Contender, rows: list[int]) -> Expectation:
    """For vectors as wide as the run's."""
    model = replace(one.problem.model, dispatch_width=job.width)
    problem = replace(one.problem, model=model)
    return Expectation(job, problem, _only(cost(problem, one.placement), rows))


def _only(found: Cost, rows: list[int]) -> Cost:
    return replace(
        found,
        dispatch_seconds_L=found.dispatch_seconds_L[rows],
        compute_seconds_L=found.compute_seconds_L[rows],
        combine_seconds_L=found.combine_seconds_L[rows],
    )


def _job(contenders: Mapping[str, Contender], rows: list[int], settings: Settings) -> DispatchJob:
    plan = contenders[PLAN]
    problem, model, workload = plan.problem, plan.problem.model, plan.problem.workload
    return DispatchJob(
        sides={name: _side(one, rows) for name, one in contenders.items()},
        layer_ids=tuple(plan.placement.layer_ids[row] for row in rows),
        experts=model.experts,
        top_k=model.top_k,
        dispatch_width=model.dispatch_width,
        shares_LE=problem.shares_LE[rows],
        unit_G=units(problem),
        transport=workload.transport,
        dispatch_dtype=workload.dispatch_dtype,
        combine_dtype=workload.combine_dtype,
        hidden=settings.hidden,
        tokens_per_rank=settings.tokens,
        repeats=settings.repeats,
        seed=settings.seed,
        timeout_seconds=settings.timeout_seconds,
        device=settings.device,
    )


def _side(one: Contender, rows: list[int]) -> Side:
    shares = list(find_rule(one.problem.replica_rule)(one.placement, one.problem.situation()))
    return Side(
        one.placement.expert_LP[rows], np.stack([shares[row] for row in rows]), one.problem.replica_rule
    )


def busiest(found: Cost, layers: int | None) -> list[int]:
    """Rows of the layers with the busiest GPUs, in layer order; ties go to the lower layer."""
    if layers is not None and layers < 1:
        raise BadInput(f"--layers {layers}: run at least one layer, or all")
    order = np.argsort(-found.max_over_mean_L.round(12), kind="stable")
    return sorted(order[:layers].tolist())
