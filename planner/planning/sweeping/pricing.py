"""Points become rows: placed by a fast method, priced on held-out load, judged for memory and engines."""

from dataclasses import dataclass, replace

from planner.base import Infeasible
from planner.cost import Cost, CurvePoint, WholeStep, ledger, whole_step
from planner.load import LoadProfile
from planner.placement import Placement
from planner.planning.answer import ResolvedRequest, resolve
from planner.planning.redundancy import curve_point, redundant_curve
from planner.planning.request import PlanRequest
from planner.planning.sweeping.placed import SEARCH, Placed
from planner.planning.sweeping.points import Layout, question
from planner.planning.sweeping.request import AUTO, FEWEST, Point
from planner.planning.sweeping.row import Figures, Row
from planner.planning.sweeping.services import services
from planner.problem import Problem
from planner.solvers import Search
from planner.topology import Topology

MOST_REDUNDANT_POINTS = 6  # of the curve over R, each of which is placed anew


@dataclass(frozen=True, eq=False)
class Job:
    """What travels to a process: the points of one layout, and what they have in common."""

    base: PlanRequest
    layout: Layout
    search: Search = SEARCH


def priced(job: Job) -> list[Row]:
    """The rows of a layout's points, in their order."""
    groups = [Placed(group, job.search) for group in job.layout.groups]
    rows = []
    for point in job.layout.points:
        found = [_row(job.base, point, group) for group in groups]
        rows.append(
            max(found, key=lambda row: row.figures.step.total_seconds if row.figures else float("inf"))
        )
    return rows


def _row(base: PlanRequest, point: Point, group: Placed) -> Row:
    try:
        asked = resolve(question(base, point, group.topology))
        problem = asked.problem_of(_redundant(asked, point, group))
        return Row(point, _figures(problem, point, group, asked.held_out_load))
    except Infeasible as refused:
        return Row(point, None, str(refused))


def _redundant(asked: ResolvedRequest, point: Point, group: Placed) -> int:
    """Chosen as `solve` does, but on the sum of the fitted load: windows would take most of a sweep.

    Slices need none; experts that do not divide are counted in memory as if they were placed.
    """
    if point.sliced:
        return asked.least_redundant
    if isinstance(point.redundant, int):
        return point.redundant
    if point.redundant == FEWEST:
        return asked.least_redundant
    assert point.redundant == AUTO

    def price(problem: Problem) -> CurvePoint:
        fitted = group.fitted(problem, point.engine)
        return curve_point(problem, fitted, fitted.layer_seconds_L)

    gpus, most = asked.topology.gpu_count, MOST_REDUNDANT_POINTS
    curve = redundant_curve(
        asked.problem_of, asked.least_redundant, gpus, SEARCH, most_points=most, price=price
    )
    return curve.whole().redundant


def _figures(problem: Problem, point: Point, group: Placed, held_out: LoadProfile | None) -> Figures:
    def priced_on(machine: Topology | None = None) -> Cost:
        if point.sliced:
            return group.sliced(problem, held_out, machine)
        return group.judged(problem, point.engine, held_out, machine)

    def tokens_on(machine: Topology | None) -> float | None:
        if machine is None:
            return None
        changed = replace(problem, topology=machine)
        return whole_step(changed, priced_on(machine), point.engine).tokens_per_s_per_gpu

    priced = priced_on()
    step = whole_step(problem, priced, point.engine, sliced=point.sliced)
    memory = ledger(problem, point.engine)

    return Figures(
        redundant=problem.redundant,
        slots_per_gpu=problem.slots_per_gpu,
        tokens_per_rank=problem.workload.tokens_per_rank,
        transport=problem.workload.transport,
        replica_rule=problem.replica_rule,
        step=step,
        max_over_mean=priced.max_over_mean,
        bottleneck=_bottleneck(step, _tier(problem, priced.bottleneck)),
        memory_left_bytes=memory.kv_left_bytes,
        requests=memory.requests,
        nics_halved=tokens_on(group.nics_halved),
        full_fabric=tokens_on(group.full_fabric),
        survives=0 if point.sliced else _spare(group.placement(problem, point.engine), problem),
        services=services(problem, point.engine, sliced=point.sliced),
        method="" if point.sliced else group.search.method,
    )


def _spare(placement: Placement, problem: Problem) -> int:
    """GPUs that may be lost, whichever, with every expert still there."""
    return int(placement.replicas_LE(problem.model.experts).min()) - 1


def _bottleneck(step: WholeStep, tier: str) -> str:
    """The part that takes longest, and of dispatch and combine the kind of link that they wait for."""
    part = max(step.seconds, key=lambda name: step.seconds[name])
    return f"{part}: {tier}" if tier and part in ("dispatch", "combine") else part


def _tier(problem: Problem, name: str) -> str:
    """That of a resource; empty where dispatch waits for none."""
    return next((one.tier for one in problem.topology.resources if one.name == name), "")
