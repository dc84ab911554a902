"""A plan judged anew: on another load or machine, by another engine's rule, with weights on replicas."""

from dataclasses import dataclass, replace
from pathlib import Path

from planner.base import BadInput
from planner.cost import BestSplit, Cost, best_split, cost
from planner.engines import Engine, default_placement, engine_names, find_engine
from planner.plan import SavedPlan, held_out_load, read_plan
from planner.planning.lookup import (
    TOKENS_PER_RANK,
    calibration_notes,
    find_load,
    find_topology,
    usual_transport,
)
from planner.problem import Problem
from planner.topology import read_speeds

TRACED_TRANSPORTS = ("rank", "node")  # whose messages depend on which experts a token chooses together
UNTRACED = (
    "which counts under transports rank and node: here tokens choose experts independently; "
    "give the trace with --load for the plan's own figures"
)


@dataclass(frozen=True)
class Anew:
    """What a plan is judged on; what is not given is the plan's own.

    Another phase takes its own usual tokens, and the transport and replica rule that the plan's engine, or
    the engine given, has in it.
    """

    load_files: tuple[Path, ...] = ()
    topology: str | None = None
    engine: str | None = None
    map_file: Path | None = None  # the map the load was recorded under, where it counts slots
    ranks: str | None = None
    gpu_speed: str | None = None
    phase: str | None = None
    tokens_per_rank: int | None = None
    calibrations: tuple[Path, ...] = ()  # put on the topology, beside what it has


@dataclass(frozen=True, eq=False)
class Judged:
    """A plan judged anew, beside what the engine would do by itself with as many slots."""

    problem: Problem
    cost: Cost
    default: Cost
    engine: str | None
    notes: tuple[str, ...]


def judged_anew(plan_file: Path, anew: Anew) -> Judged:
    """A plan on another load, machine, engine or step, beside its engine's default placement there."""
    saved = read_plan(plan_file)
    problem, notes = asked_anew(saved, str(plan_file), anew)
    engine = anew.engine or saved.value.get("engine")
    default = cost(problem, default_placement(engine, problem))
    return Judged(problem, cost(problem, saved.placement), default, engine, notes)


def re_evaluate(plan_file: Path, anew: Anew = Anew()) -> tuple[Problem, Cost, tuple[str, ...]]:
    """The cost of a plan's placement on another load, machine, engine or step. Also notes on the load."""
    saved = read_plan(plan_file)
    problem, notes = asked_anew(saved, str(plan_file), anew)
    return problem, cost(problem, saved.placement), notes


def asked_anew(saved: SavedPlan, where: str, anew: Anew) -> tuple[Problem, tuple[str, ...]]:
    """The plan's question with what is given in the place of its own; and notes on the load."""
    problem, engine = saved.problem, anew.engine
    notes: tuple[str, ...] = ()
    if anew.topology or anew.calibrations:
        asked = anew.topology or problem.topology
        topology, _ = find_topology(asked, problem.gpus, anew.calibrations)
        problem = replace(problem, topology=topology)
    notes += calibration_notes(problem.topology)
    if anew.gpu_speed is not None:
        speeds = read_speeds(anew.gpu_speed, problem.gpus)
        problem = replace(problem, topology=problem.topology.with_speeds(speeds))
    if anew.load_files or anew.map_file:
        load = find_load(anew.load_files, problem.model, anew.map_file, anew.ranks)
        problem, notes = replace(problem, load=load), (*notes, *load.notes)
    if anew.phase not in (None, problem.workload.phase):
        problem = _in_phase(str(anew.phase), problem)
        engine = engine or saved.value.get("engine")
    if anew.tokens_per_rank is not None:
        problem = replace(problem, workload=replace(problem.workload, tokens_per_rank=anew.tokens_per_rank))
    if engine:
        problem = under(find_engine(engine), problem)
    own_load = not anew.load_files and saved.value["load"].get("traced")
    if own_load and problem.workload.transport in TRACED_TRANSPORTS:
        counts = "the counts of its trace, not which experts tokens chose together"
        notes = (*notes, f"{where} holds {counts}, {UNTRACED}")
    return problem, notes


def _in_phase(phase: str, problem: Problem) -> Problem:
    """The same question in the other phase, with its usual tokens and transport."""
    transport = usual_transport(phase, problem.topology, problem.model, None)
    tokens = TOKENS_PER_RANK[phase]
    workload = replace(problem.workload, phase=phase, tokens_per_rank=tokens, transport=transport)
    return replace(problem, workload=workload)


def under(engine: Engine, problem: Problem) -> Problem:
    """The same question as the engine would run it."""
    phase, topology, model = problem.workload.phase, problem.topology, problem.model
    transport, dispatch_dtype = engine.transport(phase, topology, model), engine.dispatch_dtype(model)
    workload = replace(problem.workload, transport=transport, dispatch_dtype=dispatch_dtype)
    return replace(problem, workload=workload, replica_rule=engine.replica_rule(phase, topology, model))


def re_split(
    plan_file: Path, load_files: tuple[Path, ...], map_file: Path | None = None, ranks: str | None = None
) -> tuple[Problem, BestSplit, tuple[str, ...]]:
    """What the plan's placement could reach with weights on its replicas, fitted to the plan's load and
    judged on the files'; the plan's own held-out
    load, one window, where none are given. BadInput where there is neither. Also notes on the load.
    """
    problem, placement, value = read_plan(plan_file)
    if load_files or map_file:
        given = find_load(load_files, problem.model, map_file, ranks)
        return problem, best_split(problem, placement, given), given.notes
    load = held_out_load(value, problem.model, str(plan_file))
    if load is None:
        raise BadInput(
            f"{plan_file}: --best-split judges on load that the plan was not fitted to, "
            "and the plan holds none; give --load"
        )
    note = "judged on the plan's held-out load, which its file holds as one window"
    return problem, best_split(problem, placement, load), (note,)


def evaluate_engines(
    plan_file: Path, anew: Anew = Anew()
) -> tuple[dict[str, tuple[Problem, Cost]], tuple[str, ...]]:
    """The same placement as each engine would run it, by engine name. Also notes on the load."""
    found: dict[str, tuple[Problem, Cost]] = {}
    notes: tuple[str, ...] = ()
    for name in engine_names():
        problem, priced, own = re_evaluate(plan_file, replace(anew, engine=name))
        found[name], notes = (problem, priced), tuple(dict.fromkeys((*notes, *own)))
    return found, notes
