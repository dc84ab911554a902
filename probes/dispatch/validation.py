"""From a plan to a dispatch run and its outcome, beside what the cost model says of the same run.

Here it is chosen which layers are run, and under which shares.

Shapes: L layers that are run, P slots.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from planner.base import BadInput
from planner.cost import Cost, cost
from planner.replica import find_rule
from planner.topology import planned_seats
from probes.dispatch.contender import Contender, contender_against
from probes.dispatch.difference import difference
from probes.dispatch.emulating import WIDTH, in_cluster, long_enough
from probes.dispatch.expected import Expectation
from probes.dispatch.job import PLAN, DispatchJob, Side
from probes.dispatch.outcome import Outcome, Scope, SentTraffic
from probes.dispatch.posing import Settings, posed_job
from probes.dispatch.report import judge
from probes.dispatch.run import run
from probes.dispatch.seen import PHASES
from probes.dispatch.speed import judged_phases, verdict_of
from probes.dispatch.timed import Timed
from probes.dispatch.traffic import Traffic, own_traffic
from probes.dispatch.verdict.tolerance import check_tolerance
from probes.emulation.cluster import Emulation

__all__ = ["Contender", "Settings", "contender_against", "validate"]

TOKENS = 64  # a rank, where nobody says and nothing else follows


def validate(
    contenders: Mapping[str, Contender],
    settings: Settings,
    cluster: Emulation | None = None,
    traffic_for: Callable[[int], Traffic] | None = None,
) -> Outcome:
    """Run the busiest layers of the plan and, interleaved, of what it is held against (`default`, ...).

    In the `cluster`, where one is emulated. `traffic_for` gives the tokens that are sent by their number,
    over all ranks; without it they are those of the plan's load. BadInput where it cannot be run here;
    RunFailed where a rank fails.
    """
    check_tolerance(settings.tolerance)
    asked, settings = posed(contenders, settings, cluster)
    planned = asked[PLAN].problem
    traffic = (traffic_for or (lambda _: own_traffic(planned.load)))(
        planned.gpus * planned.workload.tokens_per_rank
    )
    asked = {name: replace(one, problem=traffic.of(one.problem)) for name, one in asked.items()}
    plan = asked[PLAN]
    rows = busiest(cost(plan.problem, plan.placement), settings.layers)
    seats = planned_seats(plan.problem.topology, settings.hosts)
    found = run(_job(asked, rows, settings), seats, cluster)
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
    judged = judged_phases(found, plan.problem.topology, emulated=cluster is not None)
    verdict = None
    if judged.phases:
        verdict = verdict_of(timed, plan.problem, judged.phases, report.device, settings.tolerance)
    sent = SentTraffic(
        traffic.kind, traffic.text, difference(found.job, found.job.sides[PLAN], planned.shares_LE[rows])
    )
    scope = _scope(found.job, sent, cluster)
    return Outcome(report, scope, plan.problem.topology, timed, verdict, judged.why)


def posed(
    contenders: Mapping[str, Contender], settings: Settings, cluster: Emulation | None
) -> tuple[dict[str, Contender], Settings]:
    """The questions for the tokens and the machine of the run, and how it is run."""
    asked = dict(contenders)
    if cluster is not None:
        asked = {name: in_cluster(one, cluster) for name, one in asked.items()}
        width = settings.hidden or min(WIDTH, asked[PLAN].problem.model.dispatch_width)
        tokens = settings.tokens or long_enough(asked[PLAN], width)
        settings = replace(settings, hidden=width, tokens=tokens, device="cpu")
    tokens = settings.tokens or TOKENS
    return {name: one.at_tokens(tokens) for name, one in asked.items()}, replace(settings, tokens=tokens)


def _scope(job: DispatchJob, sent: SentTraffic, cluster: Emulation | None) -> Scope:
    return Scope(
        job.tokens_per_rank,
        job.width,
        job.repeats,
        job.seed,
        job.transport,
        job.dispatch_dtype,
        job.combine_dtype,
        sent,
        None if cluster is None else cluster.scale,
    )


def _expectation(job: DispatchJob, one: Contender, rows: list[int]) -> Expectation:
    """For vectors as wide as the run's."""
    model = replace(one.problem.model, dispatch_width=job.compute_width)
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
    problem = plan.problem
    trace = problem.load.trace
    return posed_job(
        problem,
        {name: _side(one, rows) for name, one in contenders.items()},
        tuple(plan.placement.layer_ids[row] for row in rows),
        problem.shares_LE[rows],
        settings,
        None if trace is None else trace.experts_LTK[rows],
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
