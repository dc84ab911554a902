"""Does balancing pay? Every alternative on the same unseen windows, what it takes besides, and one answer."""

from collections.abc import Callable

from planner.base import BadInput, Infeasible
from planner.cost import does_not_fit, whole_step
from planner.load import LoadProfile
from planner.planning.answer import ResolvedRequest, resolve
from planner.planning.paying.alternatives import (
    Alternative,
    Question,
    balanced_once,
    default,
    online,
    perfect,
    permutation,
    static,
)
from planner.planning.paying.balancer import Rebalancing, asked_balancer
from planner.planning.paying.batch import fitting
from planner.planning.paying.drift import drift_of
from planner.planning.paying.notes import batch_notes, series_notes
from planner.planning.paying.series import series_of
from planner.planning.paying.verdict import Pays, Row
from planner.planning.redundancy import redundant_curve
from planner.planning.request import PlanRequest
from planner.solvers import Progress, Search, Workforce


def pays(request: PlanRequest, asked: Rebalancing, progress: Progress | None = None) -> Pays:
    """BadInput where no load was measured, or a setting cannot be; Infeasible where R cannot."""
    resolved = resolve(request)
    engine, least = request.engine, resolved.least_redundant
    bare = fitting(resolved.any_of(least), engine)
    _refuse_unmeasured(bare.problem.load)
    if not bare.fits:
        raise Infeasible(does_not_fit(resolved.any_of(least), engine))
    search = Search(request.method, request.seed, request.budget_seconds, None, workforce=Workforce())
    redundant = _redundant(request, resolved, search)
    problem = resolved.any_of(redundant)
    series = series_of(bare.problem, resolved.held_out_load, asked.window_steps)
    balancer, whose, balancer_notes = asked_balancer(engine, asked)
    question = Question(
        resolved.any_of, least, redundant, series, engine, balancer, search, asked.stall_seconds
    )
    made = _made(question, progress)
    rows = {one.name: _row(question, one) for one in made}
    error = whole_step(bare.problem, made[0].pieces[0].cost, engine).error
    ages = fitting(problem, engine)
    drift = drift_of(ages.problem if ages.fits else bare.problem, series, engine)
    notes = (*resolved.notes, *balancer_notes, *series_notes(series, balancer), *batch_notes(rows, problem))
    return Pays(rows, problem, series, drift, balancer, whose, engine, error, notes)


def _made(question: Question, progress: Progress | None) -> list[Alternative]:
    each: list[tuple[str, Callable[[Question], Alternative | tuple[Alternative, ...]]]] = [
        ("the default", default),
        ("a plan without replicas", permutation),
        ("the balancer once", balanced_once),
        ("online balancing", online),
        ("perfect balance", perfect),
    ]
    if question.redundant != question.least:
        each.insert(2, ("a plan with replicas", static))
    found: list[Alternative] = []
    for number, (text, make) in enumerate(each):
        if progress is not None:
            progress(number / len(each), text)
        made = make(question)
        found += made if isinstance(made, tuple) else (made,)
    return found


def _row(question: Question, found: Alternative) -> Row:
    batch = found.batch
    problem = batch.problem
    step = found.mean(lambda cost: whole_step(problem, cost, question.engine).total_seconds)
    tokens = problem.workload.tokens_per_rank * problem.gpus
    fewest = (problem.model.experts + question.least) // problem.gpus
    return Row(
        found.name,
        problem.redundant,
        step,
        found.mean(lambda cost: cost.total_seconds),
        found.pause_seconds,
        found.mean(lambda cost: cost.max_over_mean),
        found.mean(lambda cost: cost.cross_node_share),
        problem.workload.tokens_per_rank if batch.fits else 0,
        batch.requests,
        tokens / (step + found.pause_seconds) if batch.fits else 0.0,
        (problem.slots_per_gpu - fewest) * problem.slot_bytes + found.buffer_bytes,
        found.rearrangement,
        found.rearranged,
        found.note,
    )


def _redundant(request: PlanRequest, resolved: ResolvedRequest, search: Search) -> int:
    """R as asked; where it is open, what `solve` would choose, and at least a replica on every GPU: without
    one nothing would be compared.
    """
    if request.redundant is not None:
        return request.redundant
    least, gpus = resolved.least_redundant, resolved.topology.gpu_count
    try:
        curve = redundant_curve(resolved.problem_of, least, gpus, search, resolved.held_out_load)
        found = curve.whole().redundant
    except Infeasible:  # the planned batch does not fit: with fewer requests it may
        found = least
    if found > least:
        return found
    try:
        return resolved.any_of(least + gpus).redundant
    except Infeasible:
        return least


def _refuse_unmeasured(load: LoadProfile) -> None:
    if len(load.unmeasured_layer_ids) == len(load.layer_ids):
        raise BadInput(
            "whether balancing pays follows from a measured load, and none was given; give --load FILE, "
            "as `moeplan record` or the engine's own dump has it"
        )
