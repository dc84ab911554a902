"""Files as the placements that are compared: each beside the question that it is judged on."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planner.base import BadInput
from planner.engines import find_engine
from planner.maps import read_value
from planner.placement import Placement
from planner.plan import SCHEMA, held_out_load, plan_from_dict
from planner.planning.answer import resolve
from planner.planning.comparing.request import CompareRequest, only
from planner.planning.evaluation import Anew, asked_anew, under
from planner.planning.lookup import find_topology
from planner.planning.replanning import read_running
from planner.planning.request import PlanRequest
from planner.problem import Problem


@dataclass(frozen=True, eq=False)
class Posed:
    """A placement and the question that it is judged on."""

    name: str
    problem: Problem
    placement: Placement
    engine: str | None

    def on(self, topology: str, calibrations: tuple[Path, ...] = ()) -> "Posed":
        machine, _ = find_topology(topology, self.problem.gpus, calibrations)
        return replace(self, name=topology, problem=replace(self.problem, topology=machine))

    def served_by(self, engine: str) -> "Posed":
        return replace(self, name=engine, problem=under(find_engine(engine), self.problem), engine=engine)


def first_posed(request: CompareRequest) -> tuple[Posed, tuple[str, ...], bool]:
    """(the first file as it is judged, notes, whether the load is one that it was not fitted to)."""
    path = request.files[0]
    anew = replace(request.anew, topology=only(request.topologies), engine=only(request.engines))
    value = read_value(path)
    if not (isinstance(value, dict) and value.get("schema") == SCHEMA):
        return _first_map(path, request, anew)
    saved = plan_from_dict(value, str(path))
    problem, notes = asked_anew(saved, str(path), anew)
    held_out = None if anew.load_files else held_out_load(saved.value, problem.model, str(path))
    if held_out is not None:
        problem = replace(problem, load=held_out)
    engine = anew.engine or saved.value.get("engine")
    return Posed(str(path), problem, saved.placement, engine), notes, bool(held_out or anew.load_files)


def _first_map(path: Path, request: CompareRequest, anew: Anew) -> tuple[Posed, tuple[str, ...], bool]:
    """A map alone: of the model and on the machine that are named."""
    if request.model is None or anew.topology is None:
        raise BadInput(
            f"{path}: a map names neither model nor machine; give --model and --topology, or a plan first"
        )
    step: dict[str, Any] = {
        "phase": anew.phase or "decode",
        "tokens_per_rank": anew.tokens_per_rank,
        "engine": anew.engine,
        "calibrations": anew.calibrations,
    }
    asked = resolve(
        PlanRequest(request.model, anew.topology, anew.load_files, anew.map_file, anew.ranks, **step)
    )
    placement = read_running(path, asked.model, asked.topology.gpu_count).placement
    problem = asked.problem_of(placement.slots - asked.model.experts)
    problem = replace(problem, load=asked.load)
    return Posed(str(path), problem, placement, anew.engine), asked.notes, bool(anew.load_files)


def posed_beside(path: Path, base: Posed, request: CompareRequest) -> Posed:
    """Another file on the load and the step of the first."""
    value, model, workload = read_value(path), base.problem.model, base.problem.workload
    if not (isinstance(value, dict) and value.get("schema") == SCHEMA):
        placement = read_running(path, model, base.problem.gpus).placement
        slots_per_gpu = placement.slots // base.problem.gpus
        problem = replace(base.problem, slots_per_gpu=slots_per_gpu, survive=None, resplittable=False)
        return Posed(str(path), problem, placement, base.engine)
    saved = plan_from_dict(value, str(path))
    if saved.problem.model.name != model.name:
        raise BadInput(
            f"{path} is for {saved.problem.model.name}, {base.name} for {model.name}; "
            "compare plans of one model"
        )
    anew = replace(
        request.anew,
        load_files=(),
        map_file=None,
        topology=only(request.topologies),
        engine=only(request.engines),
    )
    problem, _ = asked_anew(saved, str(path), anew)
    if problem.workload.phase != workload.phase:
        raise BadInput(
            f"{path} is for {problem.workload.phase}, {base.name} for {workload.phase}; give --phase for both"
        )
    engine = anew.engine or saved.value.get("engine")
    step = ("tokens_per_rank", "prompt_tokens", "output_tokens", "attention_tp", "context_given")
    alike = replace(problem.workload, **{name: getattr(workload, name) for name in step})
    problem = replace(problem, load=base.problem.load, workload=alike)
    return Posed(str(path), problem, saved.placement, engine)
