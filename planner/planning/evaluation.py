"""A plan judged anew: on another load or machine, by another engine's rule, with weights on replicas."""

from dataclasses import replace
from pathlib import Path

from planner.base import BadInput
from planner.cost import BestSplit, Cost, best_split, cost
from planner.engines import Engine, engine_names, find_engine
from planner.plan import held_out_load, read_plan
from planner.planning.lookup import find_load, find_topology
from planner.problem import Problem
from planner.topology import read_speeds

TRACED_TRANSPORTS = ("rank", "node")  # whose messages depend on which experts a token chooses together
UNTRACED = (
    "which counts under transports rank and node: here tokens choose experts independently; "
    "give the trace with --load for the plan's own figures"
)


def re_evaluate(
    plan_file: Path,
    load_files: tuple[Path, ...],
    topology_text: str | None,
    engine_name: str | None,
    *,
    map_file: Path | None = None,
    ranks: str | None = None,
    gpu_speed: str | None = None,
) -> tuple[Problem, Cost, tuple[str, ...]]:
    """The cost of a plan's placement on another load, machine or engine; what is not given is the plan's own.
    Also notes on the load.
    """
    problem, placement, value = read_plan(plan_file)
    notes: tuple[str, ...] = ()
    if topology_text:
        problem = replace(problem, topology=find_topology(topology_text, problem.gpus)[0])
    if gpu_speed is not None:
        speeds = read_speeds(gpu_speed, problem.gpus)
        problem = replace(problem, topology=problem.topology.with_speeds(speeds))
    if load_files or map_file:
        load = find_load(load_files, problem.model, map_file, ranks)
        problem, notes = replace(problem, load=load), load.notes
    if engine_name:
        problem = under(find_engine(engine_name), problem)
    if not load_files and value["load"].get("traced") and problem.workload.transport in TRACED_TRANSPORTS:
        counts = "the counts of its trace, not which experts tokens chose together"
        notes = (*notes, f"{plan_file} holds {counts}, {UNTRACED}")
    return problem, cost(problem, placement), notes


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
    plan_file: Path,
    load_files: tuple[Path, ...],
    topology_text: str | None,
    *,
    map_file: Path | None = None,
    ranks: str | None = None,
    gpu_speed: str | None = None,
) -> tuple[dict[str, tuple[Problem, Cost]], tuple[str, ...]]:
    """The same placement as each engine would run it, by engine name. Also notes on the load."""
    found: dict[str, tuple[Problem, Cost]] = {}
    notes: tuple[str, ...] = ()
    for name in engine_names():
        problem, priced, own = re_evaluate(
            plan_file, load_files, topology_text, name, map_file=map_file, ranks=ranks, gpu_speed=gpu_speed
        )
        found[name], notes = (problem, priced), tuple(dict.fromkeys((*notes, *own)))
    return found, notes
