"""From a question to its answer: look everything up, choose R where it is open, solve and judge."""

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import planner
from planner.cost import pose_case, within_memory
from planner.engines import find_engine
from planner.load import LoadProfile, split_windows
from planner.model import ModelSpec, find_model
from planner.plan import Origin, Plan
from planner.planning.lookup import (
    find_current,
    find_load,
    find_topology,
    map_notes,
    model_notes,
    workload_for,
)
from planner.planning.redundancy import redundant_curve
from planner.planning.request import PlanRequest
from planner.planning.serving import launch_notes, loss_notes
from planner.planning.solving import ProblemOfR, make_plan, problem_of_r
from planner.problem import least_redundant, parse_objective
from planner.solvers import Progress, Search, Workforce
from planner.topology import Topology, read_speeds


@dataclass(frozen=True, eq=False)
class ResolvedRequest:
    """A question with everything looked up; only R is open."""

    problem_of: ProblemOfR
    model: ModelSpec
    topology: Topology
    least_redundant: int
    held_out_load: LoadProfile | None
    notes: tuple[str, ...]
    provenance: Mapping[str, object]


def resolve(request: PlanRequest) -> ResolvedRequest:
    """Look everything up. BadInput names what is not found."""
    model = request.model if isinstance(request.model, ModelSpec) else find_model(request.model)
    engine = find_engine(request.engine) if request.engine else None
    topology, topology_notes = find_topology(request.topology, request.ep)
    if request.gpu_speed is not None:
        topology = topology.with_speeds(read_speeds(request.gpu_speed, topology.gpu_count))
    objective = parse_objective(request.objective, robust=request.robust)
    whole_load = find_load(request.load_files, model, request.map_file, request.ranks)
    load, held_out_load = split_windows(whole_load, request.held_out)
    workload = workload_for(request, model, topology, engine)
    replica_rule = request.replica_rule
    if not replica_rule:
        replica_rule = engine.replica_rule(request.phase, topology, model) if engine else "even"
    problem_of = problem_of_r(
        model,
        topology,
        load,
        workload,
        replica_rule=replica_rule,
        kv_floor_bytes=request.kv_floor_bytes,
        survive=request.survive,
        objective=objective,
        resplittable=request.resplittable,
    )
    return ResolvedRequest(
        within_memory(
            problem_of,
            request.engine,
            partial(pose_case, model, topology, workload, kv_floor_bytes=request.kv_floor_bytes),
            node_gpus=len(topology.nodes[0].gpus),
        ),
        model,
        topology,
        least_redundant(model, topology, request.survive),
        held_out_load,
        notes=(*topology_notes, *whole_load.notes, *model_notes(model), *map_notes(engine, model)),
        provenance=_provenance(request, model, topology, whole_load),
    )


def answer(request: PlanRequest, progress: Progress | None = None) -> Plan:
    """Look everything up, solve and judge."""
    asked = resolve(request)
    workforce = Workforce(request.workers, request.ray)
    search = Search(request.method, request.seed, request.budget_seconds, progress, request.prove, workforce)
    origin = Origin(request.engine, request.method, asked.notes, provenance=asked.provenance)
    current = find_current(request, asked.model, asked.topology)
    redundant = request.redundant if current is None else current.placement.slots - asked.model.experts
    problem_of, held_out = asked.problem_of, asked.held_out_load
    if redundant is None:
        curve = redundant_curve(problem_of, asked.least_redundant, asked.topology.gpu_count, search, held_out)
        redundant = curve.redundant
        origin = replace(origin, notes=(*origin.notes, curve.why), curve=curve.points)
    problem = problem_of(redundant)
    refused, of_losses = launch_notes(request.engine, problem), loss_notes(request.engine, problem)
    origin = replace(origin, notes=(*refused, *origin.notes, *of_losses))
    return make_plan(problem_of, redundant, search, origin, held_out, current)


def _provenance(
    request: PlanRequest, model: ModelSpec, topology: Topology, load: LoadProfile
) -> dict[str, object]:
    """What the plan was made from and with. No clock, so that the same question gives the same bytes."""
    return {
        "moeplan": planner.__version__,
        "method": request.method,
        "seed": request.seed,
        "budget_seconds": request.budget_seconds,
        "prove": request.prove,
        "model_source": model.source,
        "topology_source": topology.source,
        "topology_sha256": topology.digest(),
        "load_source": load.source,
        "load_sha256": hashlib.sha256(load.tokens_WLE.tobytes()).hexdigest(),
        "python": ".".join(platform.python_version_tuple()[:2]),
    }
