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
from planner.planning.lookup import find_load, map_notes, model_notes, refuse_other_transport, workload_for
from planner.planning.machine import Machine, find_machine
from planner.planning.narrower import with_narrower
from planner.planning.redundancy import redundant_curve
from planner.planning.replanning import find_current
from planner.planning.request import PlanRequest
from planner.planning.serving import launch_notes, loss_notes, resize_notes
from planner.planning.solving import ProblemOfR, make_plan, problem_of_r, stopped_plan
from planner.problem import least_redundant, parse_objective
from planner.solvers import Progress, Search, Workforce
from planner.topology import Topology, read_speeds


@dataclass(frozen=True, eq=False)
class ResolvedRequest:
    """A question with everything looked up; only R is open."""

    problem_of: ProblemOfR
    any_of: ProblemOfR  # the same, also where memory does not hold the planned batch
    model: ModelSpec
    machine: Machine
    load: LoadProfile  # fitted and held-out windows
    least_redundant: int
    fitted_load: LoadProfile
    held_out_load: LoadProfile | None
    notes: tuple[str, ...]
    provenance: Mapping[str, object]

    @property
    def topology(self) -> Topology:
        """The GPUs that are planned for."""
        return self.machine.topology


def resolve(request: PlanRequest) -> ResolvedRequest:
    """Look everything up. BadInput names what is not found."""
    model = request.model if isinstance(request.model, ModelSpec) else find_model(request.model)
    engine = find_engine(request.engine) if request.engine else None
    machine = find_machine(request)
    topology = machine.topology
    if request.gpu_speed is not None:
        topology = topology.with_speeds(read_speeds(request.gpu_speed, topology.gpu_count))
    objective = parse_objective(request.objective, robust=request.robust)
    whole_load = find_load(request.load_files, model, request.map_file, request.ranks)
    load, held_out_load = split_windows(whole_load, request.held_out)
    workload = workload_for(request, model, topology, engine)
    replica_rule = request.replica_rule
    if not replica_rule:
        replica_rule = engine.replica_rule(request.phase, topology, model) if engine else "even"
    refuse_other_transport(request, replica_rule, model, topology, engine)
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
        problem_of,
        model,
        machine,
        whole_load,
        least_redundant(model, topology, request.survive),
        load,
        held_out_load,
        notes=(*machine.notes, *whole_load.notes, *model_notes(model), *map_notes(engine, model)),
        provenance=_provenance(request, model, machine, whole_load),
    )


def answer(request: PlanRequest, progress: Progress | None = None) -> Plan:
    """Look everything up, solve and judge."""
    if progress:
        progress(0.0, "reading model, machine and load")
    asked = resolve(request)
    workforce = Workforce(request.workers, request.ray)
    search = Search(request.method, request.seed, request.budget_seconds, progress, request.prove, workforce)
    origin = Origin(request.engine, request.method, asked.notes, provenance=asked.provenance)
    current = find_current(request, asked.model, asked.machine, asked.fitted_load)
    stopped = ""
    redundant = request.redundant if current is None else current.placement.slots - asked.model.experts
    problem_of, held_out = asked.problem_of, asked.held_out_load
    if redundant is None:
        trying = replace(search, progress=_in_step("curve over R", progress))
        gpus = asked.topology.gpu_count
        curve = redundant_curve(problem_of, asked.least_redundant, gpus, trying, held_out)
        redundant = curve.redundant
        if curve.stopped:
            stopped = "stopped by Ctrl-C while R was chosen: all rows are greedy's"
            search = replace(search, method="greedy", prove=False)
        origin = replace(origin, notes=(*origin.notes, curve.why), curve=curve.points)
    problem = problem_of(redundant)
    refused, of_losses = launch_notes(request.engine, problem), loss_notes(request.engine, problem)
    if current is not None:
        of_losses += resize_notes(request.engine, current.resize)
    origin = replace(origin, notes=(*refused, *origin.notes, *of_losses))
    search = replace(search, progress=_in_step("searching layers", progress))
    plan = stopped_plan(make_plan(problem_of, redundant, search, origin, held_out, current), stopped)
    if current is not None:
        return plan
    alone = replace(request, model=asked.model, load_files=asked.load, map_file=None, ep=None, gpu_speed=None)
    alone = replace(alone, without=None)
    return with_narrower(plan, lambda group: resolve(replace(alone, topology=group)))


def _in_step(name: str, progress: Progress | None) -> Progress | None:
    """Progress that names the step it is of."""
    return (lambda share, text: progress(share, f"{name}, {text}")) if progress else None


def _provenance(
    request: PlanRequest, model: ModelSpec, machine: Machine, load: LoadProfile
) -> dict[str, object]:
    """What the plan was made from and with. No clock, so that the same question gives the same bytes."""
    return {
        "moeplan": planner.__version__,
        "method": request.method,
        "seed": request.seed,
        "budget_seconds": request.budget_seconds,
        "prove": request.prove,
        "held_out_share": request.held_out,
        "model_source": model.source,
        "topology_source": machine.topology.source,
        "topology_sha256": machine.topology.digest(),
        **({"without": list(machine.lost)} if machine.lost else {}),
        "load_source": load.source,
        "load_sha256": hashlib.sha256(load.tokens_WLE.tobytes()).hexdigest(),
        "python": ".".join(platform.python_version_tuple()[:2]),
    }
