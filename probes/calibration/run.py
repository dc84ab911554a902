"""Run a plan's dispatch on several loads, placements and numbers of tokens, and calibrate by it."""

from collections.abc import Mapping

from planner.base import BadInput
from planner.cost import cost
from planner.topology import Topology, planned_seats
from probes.calibration.outcome import CalibrationOutcome, Observed, calibrate
from probes.calibration.rows import PARTS, Asked, asked_of, job_of, observed_of
from probes.dispatch.job import PLAN
from probes.dispatch.report import judge
from probes.dispatch.run import RunFailed, run, with_device
from probes.dispatch.validation import TOKENS, Contender, Settings, busiest, posed
from probes.emulation.cluster import Emulation

BACKENDS = {"cpu": "gloo", "cuda": "nccl"}


def calibrate_machine(
    contenders: Mapping[str, Contender], settings: Settings, date: str, cluster: Emulation | None = None
) -> CalibrationOutcome | None:
    """None in the ranks of a launched group that leave the word to another.

    BadInput where it cannot be run or fitted; RunFailed where a rank fails, or tokens come back wrong.
    """
    sides, settings = posed(contenders, settings, cluster)
    problem = sides[PLAN].problem
    placements = {name: one.placement for name, one in sides.items()}
    rows = busiest(cost(problem, placements[PLAN]), settings.layers)
    observed: list[Observed] = []
    backend, speaks = "", True
    for part in PARTS:
        tokens = max((settings.tokens or TOKENS) // part, 1)
        asked = asked_of(problem, placements, rows, tokens, settings.seed)
        backend, speaks = _observe(asked, settings, cluster, observed)
    machine = f"{problem.topology.name}, emulated" if cluster else problem.topology.name
    return calibrate(observed, backend, machine, date) if speaks else None


def _observe(
    asked: Asked, settings: Settings, cluster: Emulation | None, observed: list[Observed]
) -> tuple[str, bool]:
    """Adds what was observed. The backend, and whether this process speaks."""
    job = with_device(job_of(asked, settings))
    if job.device == "cpu" and cluster is None:
        _check_links(asked.problem.topology)
    found = run(job, planned_seats(asked.problem.topology, settings.hosts), cluster)
    report = judge(found)
    wrong = next((check for check in report.checks if not check.ok), None)
    if wrong is not None:
        raise RunFailed(f"check '{wrong.name}' failed: {wrong.detail}; nothing was calibrated")
    observed += observed_of(found.job, asked, report)
    return BACKENDS[job.device], found.rank == 0


def _check_links(topology: Topology) -> None:
    """BadInput where gloo would be fitted to the rates of links that it was never measured on."""
    stated = next((one for one in topology.resources if one.rate.evidence.kind != "measured"), None)
    if stated is not None:
        said = f"{stated.name} of {topology.name} is {stated.rate.evidence.kind}, not measured"
        raise BadInput(f"--calibrate between CPU processes: {said}; emulate the machine with --emulate")
