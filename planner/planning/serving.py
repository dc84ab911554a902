"""Whether an engine would serve a question: asked early by `solve`, and by `moeplan engine show`."""

from dataclasses import dataclass, replace

from planner.base import BadInput, Infeasible
from planner.cost import pose_case, too_little
from planner.engines import Verdict, elastic_of, find_engine, judge_fit, judge_launch
from planner.model import find_model
from planner.plan import LOST, Resize
from planner.planning.lookup import find_load, find_topology, workload_for
from planner.planning.request import PlanRequest
from planner.problem import Problem, check_slots


@dataclass(frozen=True)
class Serving:
    """The question that was put, and what the judge of launches says of it."""

    problem: Problem
    verdict: Verdict


def would_serve(request: PlanRequest, version: str | None = None, role: str = "mixed") -> Serving:
    """The verdict on an engine for a model, a machine, a phase and R (0 where it is not given)."""
    if request.engine is None:
        raise BadInput("name the engine that would serve")
    model = find_model(request.model) if isinstance(request.model, str) else request.model
    topology, _ = find_topology(request.topology, request.ep, request.calibrations)
    engine = find_engine(request.engine)
    least = -model.experts % topology.gpu_count
    slots = check_slots(model, topology.gpu_count, least if request.redundant is None else request.redundant)
    workload = workload_for(request, model, topology, engine)
    rule = engine.replica_rule(request.phase, topology, model)
    load, redundant = find_load((), model), slots * topology.gpu_count - model.experts
    try:
        problem = Problem(topology, model, load, workload, slots, rule)
    except Infeasible:  # experts alone are too large: said as `solve` says it
        raise Infeasible(
            too_little(pose_case(model, topology, workload, redundant), request.engine)
        ) from None
    verdict = judge_launch(request.engine, problem, version, role)
    findings = (*verdict.findings, judge_fit(request.engine, problem))
    return Serving(problem, replace(verdict, findings=findings))


def launch_notes(engine: str | None, problem: Problem) -> tuple[str, ...]:
    """What `emit` would refuse, said before anyone counts on the plan."""
    if engine is None:
        return ()
    verdict = judge_launch(engine, problem)
    return tuple(
        f"WARNING: `emit --engine {engine}` would refuse this plan: {finding.text}"
        for finding in verdict.refused
    )


def loss_notes(engine: str | None, problem: Problem) -> tuple[str, ...]:
    """What the engine does when it loses ranks, where the question asks to survive that."""
    if engine is None or problem.survive is None:
        return ()
    title, elastic = find_engine(engine).TITLE, elastic_of(engine)
    if not elastic.replaces:
        return (f"{title} does not place experts anew after a loss ({elastic.replaces_source})",)
    words = " ".join(elastic.replaces_by)
    text = f"{title} places experts anew after a loss where it is started with {words}"
    return (f"{text} ({elastic.replaces_source}); the launch that `emit` writes has other words",)


def resize_notes(engine: str | None, resize: Resize | None) -> tuple[str, ...]:
    """How the engine is asked to serve with more or fewer GPUs, where the plan is for such a change."""
    if engine is None or resize is None or resize.how == LOST:
        return ()
    title, elastic, gpus = find_engine(engine).TITLE, elastic_of(engine), len(resize.kept_G)
    most = max(gpus, resize.old.gpus)
    words = " ".join(elastic.resizes_by).replace("GPUS", str(most))
    request = elastic.request.replace("GPUS", str(gpus))
    asked = f"{title} takes this size by {request}, started with {words}"
    return (f"{asked} ({elastic.resizes_source}); it then places experts by its own balancer",)
