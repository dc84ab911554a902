"""Does balancing pay? Every alternative on the same unseen windows, what it takes besides, and one answer."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from planner.base import BadInput, Infeasible
from planner.cost import does_not_fit, whole_step
from planner.engines import OnlineBalancer, find_engine, online_balancer
from planner.load import LoadProfile
from planner.planning.answer import ResolvedRequest, resolve
from planner.planning.pays.alternatives import (
    Alternative,
    Question,
    balanced_once,
    default,
    online,
    perfect,
    permutation,
    static,
)
from planner.planning.pays.batch import fitting
from planner.planning.pays.clock import step_seconds
from planner.planning.pays.drift import Drift, drift_of
from planner.planning.pays.rearranging import Rearrangement
from planner.planning.pays.series import Series, series_of
from planner.planning.redundancy import redundant_curve
from planner.planning.request import PlanRequest
from planner.problem import Problem
from planner.solvers import Progress, Search, Workforce

WORTH_IT = 0.01  # a gain below it is none: as in the verdict on a plan
LOADED_ONCE = ("permutation", "static plan", "EPLB once")
ASSUMED_BALANCER = "vllm"  # whose settings stand in where no engine is named, or it has none that were read


@dataclass(frozen=True)
class Rebalancing:
    """How the engine rebalances, where it is not as its own flags are; None is the engine's own."""

    interval_steps: int | None = None
    look_back_steps: int | None = None
    stops: bool | None = None
    stall_seconds: float | None = None  # of one rearrangement, as the engine's log tells it
    window_steps: float | None = None  # steps that one window of the load stands for


@dataclass(frozen=True)
class Row:
    """An alternative as figures: means over the steps of the judged windows.

    A step is a whole one, attention and the engine included; its MoE layers are also told by themselves, as a
    plan's cost has them. `pause_seconds` of moving weights come on top. Bytes are of one GPU.
    """

    name: str
    redundant: int
    step_seconds: float
    moe_seconds: float
    pause_seconds: float
    max_over_mean: float
    cross_node_share: float  # of assignments
    tokens_per_rank: int  # no more than memory has requests for
    requests: int  # at full context, that memory holds on all GPUs
    tokens_per_s: float  # of all GPUs; 0 where not even one request fits
    memory_bytes: float  # of replicas and buffers, beyond one slot for each expert
    rearrangement: Rearrangement | None
    rearranged: int  # how often within the judged windows
    note: str


@dataclass(frozen=True, eq=False)
class Pays:
    """The rows by name, and what they rest on."""

    rows: dict[str, Row]
    problem: Problem
    series: Series
    drift: Drift
    balancer: OnlineBalancer
    balancer_of: str
    engine: str | None
    error: str  # of a predicted step on this GPU
    notes: tuple[str, ...]

    @property
    def online(self) -> Row:
        """As the engine does it."""
        return self.rows["EPLB, stops" if self.balancer.stalls else "EPLB, async"]

    @property
    def best_static(self) -> Row:
        """What to load once: the first of these within WORTH_IT of the fastest: replicas have to earn it."""
        found = [self.rows[name] for name in LOADED_ONCE if name in self.rows]
        least = max(row.tokens_per_s for row in found) / (1 + WORTH_IT)
        return next(row for row in found if row.tokens_per_s >= least)

    @property
    def winner(self) -> Row | None:
        """What pays; None where nothing is worth it. A static plan, where online balancing is no better."""
        least = self.rows["default"].tokens_per_s * (1 + WORTH_IT)
        if self.online.tokens_per_s > max(self.best_static.tokens_per_s * (1 + WORTH_IT), least):
            return self.online
        return self.best_static if self.best_static.tokens_per_s >= least else None

    def gain(self, row: Row, beside: Row | None = None) -> float:
        """Tokens a second more than the default, or than `beside`, as a share."""
        return row.tokens_per_s / (beside or self.rows["default"]).tokens_per_s - 1


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
    balancer, whose, balancer_notes = _balancer(engine, asked)
    question = Question(
        resolved.any_of, least, redundant, series, engine, balancer, search, asked.stall_seconds
    )
    made = _made(question, progress)
    rows = {one.name: _row(question, one) for one in made}
    error = whole_step(bare.problem, made[0].pieces[0].cost, engine).error
    ages = fitting(problem, engine)
    drift = drift_of(ages.problem if ages.fits else bare.problem, series, engine)
    notes = (*resolved.notes, *balancer_notes, *_series_notes(series, balancer), *_batch_notes(rows, problem))
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
    step = found.mean(lambda cost: step_seconds(problem, cost, question.engine))
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
        found = redundant_curve(resolved.problem_of, least, gpus, search, resolved.held_out_load).redundant
    except Infeasible:  # the planned batch does not fit: with fewer requests it may
        found = least
    if found > least:
        return found
    try:
        return resolved.any_of(least + gpus).redundant
    except Infeasible:
        return least


def _balancer(engine: str | None, asked: Rebalancing) -> tuple[OnlineBalancer, str, tuple[str, ...]]:
    """The engine's balancer with what was asked, whose it is, and what must be said."""
    found = online_balancer(engine) if engine else None
    whose = engine if engine and found else ASSUMED_BALANCER
    found = found or online_balancer(whose)
    assert found is not None
    title = find_engine(whose).TITLE
    notes: tuple[str, ...] = ()
    if engine and whose != engine:
        notes = (f"no online balancer of {find_engine(engine).TITLE} was read: {title}'s settings are taken",)
    steps = {"--interval": asked.interval_steps, "--look-back": asked.look_back_steps}
    for flag, value in steps.items():
        if value is not None and value < 1:
            raise BadInput(f"{flag} {value}: it must be at least 1 step")
    if asked.stall_seconds is not None and not asked.stall_seconds >= 0:
        raise BadInput(f"--stall {asked.stall_seconds:g}: seconds that a rearrangement takes, 0 or more")
    balancer = replace(
        found,
        interval_steps=asked.interval_steps or found.interval_steps,
        window_steps=asked.look_back_steps
        or min(found.window_steps, asked.interval_steps or found.window_steps),
        stalls=found.stalls if asked.stops is None else asked.stops,
    )
    return balancer, title, notes


def _refuse_unmeasured(load: LoadProfile) -> None:
    if len(load.unmeasured_layer_ids) == len(load.layer_ids):
        raise BadInput(
            "whether balancing pays follows from a measured load, and none was given; give --load FILE, "
            "as `moeplan record` or the engine's own dump has it"
        )


def _series_notes(series: Series, balancer: OnlineBalancer) -> tuple[str, ...]:
    notes: list[str] = []
    if not series.unseen:
        notes.append(
            "one window of load: how it drifts cannot be known, and every figure is on the load that "
            "the plans were fitted to; record several windows"
        )
    elif series.judged_steps < balancer.interval_steps:
        notes.append(
            f"the judged windows are {series.judged_steps:,.1f} steps, fewer than the "
            f"{balancer.interval_steps:,} between two rearrangements: "
            "what the load does in between is not in them"
        )
    if series.fitted[0].domains:
        notes.append("windows of several domains are no series in time: drift is from one domain to another")
    return tuple(notes)


def _batch_notes(rows: dict[str, Row], problem: Problem) -> tuple[str, ...]:
    """Where memory cuts the batch that was asked for."""
    asked = problem.workload.tokens_per_rank
    room: dict[int, list[str]] = {}
    for name, row in rows.items():
        if row.tokens_per_rank < asked:
            room.setdefault(row.tokens_per_rank, []).append(name)
    if not room:
        return ()
    length = f"requests of {problem.workload.context_tokens:,} tokens"
    given = "" if problem.workload.context_given else " (assumed: give --context)"
    cut = "; ".join(f"{tokens} in {', '.join(names)}" for tokens, names in sorted(room.items(), reverse=True))
    return (f"memory has room for fewer than {asked} {length} a rank{given}: {cut}",)
