"""Whether the speed of a run says anything of the plan's machine, and how far off the law may be there."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.cost import constants_of
from planner.problem import Problem
from planner.topology import Topology
from probes.dispatch.run import Found
from probes.dispatch.seen import PHASES
from probes.dispatch.timed import EXCHANGES, Timed
from probes.dispatch.verdict import LawError, Verdict, judge_speed
from probes.dispatch.verdict.tolerance import EMULATED, EMULATED_ON_THE_WAY, UNKNOWN, measured_error

ON_CPU = "ran on the CPU, and not over the links that the topology tells of"


@dataclass(frozen=True)
class Judged:
    """The phases whose seconds are judged; none, and why."""

    phases: tuple[str, ...]
    why: str


def judged_phases(found: Found, topology: Topology, *, emulated: bool) -> Judged:
    """On GPUs all, over links that were measured or shaped the exchanges."""
    if emulated:
        return Judged(EXCHANGES, "")
    measured = all(one.rate.evidence.kind == "measured" for one in topology.resources)
    if found.job.device != "cuda" and not (measured and len(set(found.hosts)) > 1):
        return Judged((), ON_CPU)
    if found.notes:
        return Judged((), found.notes[0])
    return Judged(PHASES if found.job.device == "cuda" else EXCHANGES, "")


def verdict_of(
    timed: Sequence[Timed], problem: Problem, phases: Sequence[str], device: str, asked: float | None
) -> Verdict:
    law = {phase: law_error(problem, phase, device) for phase in phases}
    return judge_speed(timed, problem.topology, law, judged=phases, asked=asked)


def law_error(problem: Problem, phase: str, device: str) -> LawError:
    """Of a calibration, on what it was not fitted to; of a chip's constants, likewise; or as is stated."""
    calibration = problem.topology.calibration
    transport = problem.workload.transport
    if device != "cuda" and not (calibration and calibration.find(transport, phase)):
        share = EMULATED_ON_THE_WAY if (transport, phase) == ("node", "combine") else EMULATED
        return LawError(share, "stated for links that were measured or shaped, before any calibration")
    constants = constants_of(problem)
    found = {"dispatch": constants.dispatch, "combine": constants.combine}.get(phase) or constants.compute
    if found.held_out is None:
        return LawError(UNKNOWN, f"stated, since {found.error}")
    return measured_error(found.held_out, f"of constants {found.source}")
