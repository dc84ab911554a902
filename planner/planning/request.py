"""What a person asks, as text, made into values: names and files are looked up, and every assumption that fills a gap is written down."""

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import planner
from planner.base import BadInput
from planner.cost import memory_notes, within_floor
from planner.engines import Engine, find_engine, map_formats
from planner.load import LoadProfile, read_load, shipped_load, split_windows, uniform_load
from planner.maps import read_slot_map
from planner.model import ModelSpec, find_model
from planner.plan import Origin, Plan
from planner.planning.current import read_current
from planner.planning.redundancy import redundant_curve
from planner.planning.solving import ProblemOfR, make_plan, problem_of_r
from planner.problem import Survival, Workload, least_redundant, parse_objective
from planner.solvers import CurrentPlacement, Progress, Search, Workforce
from planner.topology import Topology, read_speeds, read_topology

DEFAULT_TOPOLOGY = "hgx-h100"
TOKENS_PER_RANK = {"decode": 128, "prefill": 4096}


@dataclass(frozen=True)
class PlanRequest:
    """The flags of `moeplan solve`; None is a flag that was not given."""

    model: str
    topology: str | None = None
    load_files: tuple[Path, ...] = ()
    map_file: Path | None = None  # the map the load was recorded under, where it counts slots
    ranks: str | None = None  # what identical load files are: same, one counter; sum, several
    redundant: int | None = None  # None: chosen by predicted time
    ep: int | None = None
    engine: str | None = None
    method: str = "auto"
    seed: int = 0
    budget_seconds: float | None = None
    phase: str = "decode"
    tokens_per_rank: int | None = None
    transport: str | None = None
    replica_rule: str | None = None
    held_out: float = 1 / 3
    kv_floor_bytes: float = 0.0
    survive: Survival | None = None
    objective: str = "mean"
    robust: bool = False
    gpu_speed: str | None = None
    resplittable: bool = False
    previous: Path | None = None  # the plan or map that runs: the answer is a re-plan of it
    most_moves: str | None = None  # '20', or '7%' of all slots
    prove: bool = False
    workers: int | None = None  # None: as many processes as pay
    ray: str | None = None  # address of a cluster to work on


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
    model = find_model(request.model)
    engine = find_engine(request.engine) if request.engine else None
    topology, topology_notes = find_topology(request.topology, request.ep)
    if request.gpu_speed is not None:
        topology = topology.with_speeds(read_speeds(request.gpu_speed, topology.gpu_count))
    objective = parse_objective(request.objective, robust=request.robust)
    whole_load = find_load(request.load_files, model, request.map_file, request.ranks)
    load, held_out_load = split_windows(whole_load, request.held_out)
    workload = workload_for(request, model, topology, engine)
    replica_rule = request.replica_rule or (
        engine.replica_rule(request.phase, topology) if engine else "even"
    )
    limits = {
        "kv_floor_bytes": request.kv_floor_bytes, "survive": request.survive, "objective": objective, "resplittable": request.resplittable,
    }  # fmt: skip
    problem_of = problem_of_r(model, topology, load, workload, replica_rule=replica_rule, **limits)
    problem_of = within_floor(problem_of, request.engine)
    notes = (*topology_notes, *whole_load.notes, *_model_notes(model), *_map_notes(engine, model))
    least = least_redundant(model, topology, request.survive)
    return ResolvedRequest(
        problem_of,
        model,
        topology,
        least,
        held_out_load,
        notes,
        _provenance(request, model, topology, whole_load),
    )


def answer(request: PlanRequest, progress: Progress | None = None) -> Plan:
    """Look everything up, solve and judge."""
    asked = resolve(request)
    search = Search(
        request.method,
        request.seed,
        request.budget_seconds,
        progress,
        request.prove,
        Workforce(request.workers, request.ray),
    )
    origin = Origin(request.engine, request.method, asked.notes, provenance=asked.provenance)
    current = find_current(request, asked.model, asked.topology)
    redundant = request.redundant if current is None else current.placement.slots - asked.model.experts
    if redundant is None:
        curve = redundant_curve(
            asked.problem_of, asked.least_redundant, asked.topology.gpu_count, search, asked.held_out_load
        )
        redundant = curve.redundant
        origin = replace(origin, notes=(*origin.notes, curve.why), curve=curve.points)
    origin = replace(
        origin, notes=(*origin.notes, *memory_notes(asked.problem_of(redundant), request.engine))
    )
    return make_plan(asked.problem_of, redundant, search, origin, asked.held_out_load, current)


def find_current(request: PlanRequest, model: ModelSpec, topology: Topology) -> CurrentPlacement | None:
    """The placement that runs, where the question names one."""
    if request.previous is None:
        if request.most_moves is not None:
            raise BadInput(
                f"--max-moves {request.most_moves}: moves are counted from a placement that runs; name it with --from PLAN"
            )
        return None
    if request.survive or request.resplittable:
        limit = "--survive" if request.survive else "--resplittable"
        raise BadInput(
            f"--from {request.previous}: a re-plan within few moves cannot promise {limit}; plan without --from, or leave {limit} out"
        )
    return read_current(request.previous, request.most_moves, model, topology.gpu_count, request.redundant)


def find_topology(text: str | None, ep: int | None = None) -> tuple[Topology, tuple[str, ...]]:
    """The topology asked for, cut to the EP size where one is given, and notes on what was assumed."""
    topology = read_topology(text or DEFAULT_TOPOLOGY)
    notes = (
        ()
        if text
        else (
            f"no topology given: the preset {DEFAULT_TOPOLOGY} was assumed, one node of {topology.gpu_count} GPUs",
        )
    )
    if ep is None or ep == topology.gpu_count:
        return topology, notes
    sizes = [len(node.gpus) for node in topology.nodes]
    if 0 < ep <= sizes[0]:
        return topology.select(1, ep), notes
    whole = [sum(sizes[:count]) for count in range(1, len(sizes) + 1)]
    if ep not in whole:
        shown = ", ".join(map(str, whole[:8])) + (", ..." if len(whole) > 8 else "")
        raise BadInput(
            f"--ep {ep}: {topology.name} has whole nodes for EP sizes {shown}, or up to {sizes[0]} GPUs of its first node"
        )
    return topology.select(whole.index(ep) + 1), notes


def find_load(
    files: tuple[Path, ...], model: ModelSpec, map_file: Path | None = None, ranks: str | None = None
) -> LoadProfile:
    """The load in the files; where none are given the profile shipped for the model, else an even one that says so."""
    if files:
        return read_load(files, model, read_slot_map(map_file, model) if map_file else None, ranks)
    if map_file:
        raise BadInput(
            f"--map {map_file}: it says which experts the slots of a load held, and no --load was given"
        )
    return shipped_load(model) or uniform_load(model)


def workload_for(
    request: PlanRequest, model: ModelSpec, topology: Topology, engine: Engine | None = None
) -> Workload:
    """Tokens, dtypes and transport of a step: what was asked, else the engine's own, else the usual."""
    dispatch_dtype = (
        engine.dispatch_dtype(model) if engine else ("fp8" if model.weight_dtype == "fp8" else "bf16")
    )
    transport = request.transport or (
        engine.transport(request.phase, topology, model)
        if engine
        else _usual_transport(request.phase, topology)
    )
    tokens = (
        request.tokens_per_rank if request.tokens_per_rank is not None else TOKENS_PER_RANK[request.phase]
    )
    return Workload(tokens, request.phase, dispatch_dtype, "bf16", transport)


def _usual_transport(phase: str, topology: Topology) -> str:
    if phase == "decode":
        return "slot"
    return "rank" if min(topology.node_count, topology.domain_count) == 1 else "node"


def _model_notes(model: ModelSpec) -> tuple[str, ...]:
    return (
        (f"the weight dtype of {model.name} is not verified: {model.weight_dtype} was assumed",)
        if model.dtype_assumed
        else ()
    )


def _map_notes(engine: Engine | None, model: ModelSpec) -> tuple[str, ...]:
    """Where the plan's map would not be read, said before anyone counts on the plan."""
    if engine is None or engine.NAME not in map_formats() or engine.reads_map(model):
        return ()
    return (
        f"{engine.TITLE} {engine.VERSION} does not read a map for {model.architecture}: it would serve its default placement, and `emit` writes no map for it",
    )


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
