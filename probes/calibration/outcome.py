"""From timed settings to a calibration: each phase fitted and judged beside the prediction before. Pure.

Shapes: R resources.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.base import BadInput
from planner.cost import constants_of, extent_of
from planner.problem import Problem
from planner.topology import Calibration, PhaseCalibration, Scale, Topology, rates_of
from probes.calibration.fit import Fitted, Setting, fit
from probes.dispatch.timed import EXCHANGES, Timed


@dataclass(frozen=True, eq=False)
class Observed:
    """A row under a placement; `problem` has the tokens and the width of the run, `load` names its load."""

    timed: Timed
    problem: Problem
    load: str


@dataclass(frozen=True, eq=False)
class Judged:
    """One phase: mean relative error of the prediction before, and the fit with its own errors."""

    phase: str
    before: float
    fitted: Fitted


@dataclass(frozen=True, eq=False)
class CalibrationOutcome:
    """`refused`: why a phase could not be fitted."""

    calibration: Calibration
    judged: tuple[Judged, ...]
    refused: Mapping[str, str]

    def to_dict(self, calibration: dict[str, Any]) -> dict[str, Any]:
        phases = {
            one.phase: {
                "settings": one.fitted.settings,
                "error_before": one.before,
                "error": one.fitted.error,
                "held_out_error": one.fitted.held_out_error,
                "left_out": dict(one.fitted.left_out),
                "not_seen": list(one.fitted.unseen),
            }
            for one in self.judged
        }
        return {"calibration": calibration, "phases": phases, "refused": dict(self.refused)}


def calibrate(observed: Sequence[Observed], backend: str, machine: str, date: str) -> CalibrationOutcome:
    """Dispatch and combine of the runs' transport. BadInput where neither can be fitted."""
    found = {phase: _attempt(observed, phase) for phase in EXCHANGES}
    judged = tuple(one for one in found.values() if isinstance(one, Judged))
    refused = {phase: str(one) for phase, one in found.items() if isinstance(one, BadInput)}
    if not judged:
        raise BadInput("; ".join(refused.values()))
    phases = tuple(_phase(one, observed, machine, date) for one in judged)
    return CalibrationOutcome(Calibration(backend, phases), judged, refused)


def _attempt(observed: Sequence[Observed], phase: str) -> Judged | BadInput:
    try:
        return _judged(observed, phase)
    except BadInput as reason:
        return reason


def _judged(observed: Sequence[Observed], phase: str) -> Judged:
    problem = observed[0].problem
    topology = problem.topology
    settings = [_setting(one, phase) for one in observed]
    seconds = np.array([one.timed.seconds(phase) for one in observed])
    drawn = np.array([one.timed.expected.drawn[phase] for one in observed])
    tier_R = [resource.tier for resource in topology.resources]
    what = f"{problem.workload.transport} {phase}"
    found = fit(settings, tier_R, _prior(problem, phase), what)
    return Judged(phase, float(np.abs(drawn / seconds - 1).mean()), found)


def _setting(one: Observed, phase: str) -> Setting:
    """Seconds less a pipeline's way through its other hops, which no efficiency of the slowest one tells."""
    expected, constants = one.timed.expected, getattr(constants_of(one.problem), phase)
    start = constants.start_seconds(one.problem.gpus, one.problem.slots_per_gpu)
    fill = expected.start[phase] - start
    seconds_R = expected.drawn_R[phase] * expected.bytes_per_s_R[phase] / one.problem.topology.capacity_R
    return Setting(one.timed.side, one.load, one.timed.seconds(phase) - fill, seconds_R)


def _prior(problem: Problem, phase: str) -> dict[str, float]:
    """Efficiency of each tier as the cost model has it now."""
    constants = getattr(constants_of(problem), phase)
    return {
        one.tier: constants.reached(one.tier, measured=one.rate.evidence.kind == "measured")
        for one in problem.topology.resources
    }


def _phase(one: Judged, observed: Sequence[Observed], machine: str, date: str) -> PhaseCalibration:
    problems = [each.problem for each in observed]
    return PhaseCalibration(
        problems[0].workload.transport,
        one.phase,
        one.fitted.start_seconds,
        one.fitted.reached,
        _scale(problems, problems[0].topology, one.phase),
        one.fitted.settings,
        one.fitted.error,
        one.fitted.held_out_error,
        machine,
        date,
    )


def _scale(problems: Sequence[Problem], topology: Topology, phase: str) -> Scale:
    sent = [extent_of(problem, phase).bytes_sent for problem in problems]
    tokens = [problem.workload.tokens_per_rank for problem in problems]
    return Scale(
        topology.gpu_count,
        topology.domain_count,
        topology.node_count,
        (min(tokens), max(tokens)),
        problems[0].model.dispatch_width,
        (min(sent), max(sent)),
        tuple(rates_of(topology).items()),
    )
