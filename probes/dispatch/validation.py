"""From a plan to a dispatch run and its outcome, beside what the cost model says of the same run.

Here it is chosen which layers are run, and under which shares.

Shapes: L layers that are run, P slots.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.base import BadInput
from planner.cost import Cost, cost, units
from planner.replica import find_rule
from planner.topology import planned_seats
from probes.dispatch.contender import Contender, contender_against
from probes.dispatch.emulating import WIDTH, in_cluster, long_enough
from probes.dispatch.expected import Expectation
from probes.dispatch.gemm.shapes import shape_of
from probes.dispatch.job import PLAN, DispatchJob, Side
from probes.dispatch.outcome import Outcome, Scope
from probes.dispatch.report import judge
from probes.dispatch.run import run
from probes.dispatch.seen import PHASES
from probes.dispatch.speed import judged_phases, verdict_of
from probes.dispatch.timed import Timed
from probes.dispatch.verdict.tolerance import check_tolerance
from probes.emulation.cluster import Emulation

__all__ = ["Contender", "Settings", "contender_against", "validate"]

TOKENS = 64  # a rank, where nobody says and nothing else follows


@dataclass(frozen=True)
class Settings:
    """How to run.

    `layers` None means all; `hidden` None means 64 on a CPU, 512 in an emulated cluster, the model's own
    width on GPUs; `tokens` None means 64, and as many as a phase needs in an emulated cluster.
    """

    layers: int | None = 4
    tokens: int | None = None
    hidden: int | None = None
    repeats: int = 5
    seed: int = 0
    timeout_seconds: float = 120.0
    device: str = "auto"  # auto, cpu, cuda
    tolerance: float | None = None  # None: what the law's error and the noise come to
    kernels: str = "auto"  # what sends on GPUs: auto, torch, deepep, nccl-ep
    cuda_graph: bool = False
    virtual: bool = False  # one process plays all ranks
    hosts: tuple[str, ...] = ()  # of the plan's nodes, for ranks that were launched; empty: any


def validate(
    contenders: Mapping[str, Contender], settings: Settings, cluster: Emulation | None = None
) -> Outcome:
    """Run the busiest layers of the plan and, interleaved, of what it is held against (`default`, ...).

    In the `cluster`, where one is emulated. BadInput where it cannot be run here; RunFailed where a rank
    fails.
    """
    check_tolerance(settings.tolerance)
    asked, settings = posed(contenders, settings, cluster)
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
    return Outcome(report, _scope(found.job, cluster), plan.problem.topology, timed, verdict, judged.why)


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


def _scope(job: DispatchJob, cluster: Emulation | None) -> Scope:
    return Scope(
        job.tokens_per_rank,
        job.width,
        job.repeats,
        job.seed,
        job.transport,
        job.dispatch_dtype,
        job.combine_dtype,
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
        tokens_per_rank=problem.workload.tokens_per_rank,
        repeats=settings.repeats,
        seed=settings.seed,
        timeout_seconds=settings.timeout_seconds,
        device=settings.device,
        expert=shape_of(model),
        kernels=settings.kernels,
        cuda_graph=settings.cuda_graph,
        virtual=settings.virtual,
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
