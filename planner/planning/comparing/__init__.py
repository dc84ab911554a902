"""Plans, maps, machines or engines side by side, on one load: one thing varies, the rest is alike.

Shapes: L layers, G GPUs.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from planner.base import BadInput
from planner.cost import Cost, WholeStep, cost, ledger, whole_step
from planner.engines import find_engine
from planner.maps import read_value
from planner.placement import Placement
from planner.plan import SCHEMA, Moves, aligned, held_out_load, plan_from_dict, plan_moves
from planner.planning.answer import resolve
from planner.planning.current import read_running
from planner.planning.evaluation import Anew, asked_anew, under
from planner.planning.lookup import find_topology
from planner.planning.request import PlanRequest
from planner.planning.worth import WORTH_IT
from planner.problem import Problem

OWN = Anew()  # everything as the first plan has it


@dataclass(frozen=True)
class CompareRequest:
    """What is compared: files, or one plan on several machines, or under several engines."""

    files: tuple[Path, ...]
    topologies: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    model: str | None = None  # for maps without a plan
    anew: Anew = OWN  # the load and the step


@dataclass(frozen=True, eq=False)
class Side:
    """One of the things compared, on the load of all."""

    name: str
    problem: Problem
    placement: Placement
    engine: str | None
    cost: Cost
    whole: WholeStep
    kv_left_bytes: float  # of the GPU that keeps least
    differing: (
        int | None
    )  # slots that hold an expert new to their GPU beside the first side; None: other GPUs
    moves: Moves | None  # from the first side, where GPUs and slots are as many

    @property
    def tokens_per_s_per_gpu(self) -> float:
        return self.whole.tokens_per_s_per_gpu


@dataclass(frozen=True, eq=False)
class Comparison:
    """`unseen`: the load is one that the first plan was not fitted to."""

    sides: tuple[Side, ...]
    load: str
    unseen: bool
    varied: str  # placement, topology or engine
    notes: tuple[str, ...]

    @property
    def best(self) -> int:
        """The side that serves most; of equals the first."""
        return max(range(len(self.sides)), key=lambda at: (self.sides[at].tokens_per_s_per_gpu, -at))

    def gain(self, at: int, over: int = 0) -> float:
        """Tokens/s a GPU of one side over another's, less 1."""
        return self.sides[at].tokens_per_s_per_gpu / self.sides[over].tokens_per_s_per_gpu - 1

    def tie(self, at: int, over: int = 0) -> bool:
        """Whether a difference may be the model's: of placements alone most of its error is common."""
        return abs(self.gain(at, over)) <= self._doubt(at, over)

    def _doubt(self, at: int, over: int) -> float:
        one, other = self.sides[at], self.sides[over]
        if one.problem.topology == other.problem.topology and one.engine == other.engine:
            return WORTH_IT
        return max(WORTH_IT, *(side.whole.error_share or 0.0 for side in (one, other)))


def compare(request: CompareRequest) -> Comparison:
    """BadInput where more than one thing varies, or nothing does, or files are of different models."""
    varied = _varied(request)
    base, notes, unseen = _first(request)
    asked = [base]
    if varied == "topology":
        asked = [base.on(text) for text in request.topologies]
    elif varied == "engine":
        asked = [base.served_by(name) for name in request.engines]
    else:
        asked += [_other(path, base, request) for path in request.files[1:]]
    sides = tuple(_side(one, asked[0]) for one in asked)
    return Comparison(sides, base.problem.load.source, unseen, varied, notes)


@dataclass(frozen=True, eq=False)
class _Posed:
    """A placement and the question that it is judged on."""

    name: str
    problem: Problem
    placement: Placement
    engine: str | None

    def on(self, topology: str) -> "_Posed":
        machine, _ = find_topology(topology, self.problem.gpus)
        return replace(self, name=topology, problem=replace(self.problem, topology=machine))

    def served_by(self, engine: str) -> "_Posed":
        return replace(self, name=engine, problem=under(find_engine(engine), self.problem), engine=engine)


def _varied(request: CompareRequest) -> str:
    several = {
        "placement": len(request.files) > 1,
        "topology": len(request.topologies) > 1,
        "engine": len(request.engines) > 1,
    }
    names = [name for name, holds in several.items() if holds]
    if len(names) != 1:
        given = "nothing varies" if not names else f"{' and '.join(names)} vary"
        raise BadInput(
            f"compare: {given}; give several plans or maps, or one plan with --topology twice or more, "
            "or one with --engine twice or more"
        )
    return names[0]


def _first(request: CompareRequest) -> tuple[_Posed, tuple[str, ...], bool]:
    """(the first file as it is judged, notes, whether the load is one that it was not fitted to)."""
    path = request.files[0]
    anew = replace(request.anew, topology=_only(request.topologies), engine=_only(request.engines))
    value = read_value(path)
    if not (isinstance(value, dict) and value.get("schema") == SCHEMA):
        return _first_map(path, request, anew)
    saved = plan_from_dict(value, str(path))
    problem, notes = asked_anew(saved, str(path), anew)
    held_out = None if anew.load_files else held_out_load(saved.value, problem.model, str(path))
    if held_out is not None:
        problem = replace(problem, load=held_out)
    engine = anew.engine or saved.value.get("engine")
    return _Posed(str(path), problem, saved.placement, engine), notes, bool(held_out or anew.load_files)


def _first_map(path: Path, request: CompareRequest, anew: Anew) -> tuple[_Posed, tuple[str, ...], bool]:
    """A map alone: of the model and on the machine that are named."""
    if request.model is None or anew.topology is None:
        raise BadInput(
            f"{path}: a map names neither model nor machine; give --model and --topology, or a plan first"
        )
    step: dict[str, Any] = {
        "phase": anew.phase or "decode",
        "tokens_per_rank": anew.tokens_per_rank,
        "engine": anew.engine,
    }
    asked = resolve(
        PlanRequest(request.model, anew.topology, anew.load_files, anew.map_file, anew.ranks, **step)
    )
    placement = read_running(path, asked.model, asked.topology.gpu_count).placement
    problem = asked.problem_of(placement.slots - asked.model.experts)
    problem = replace(problem, load=asked.load)
    return _Posed(str(path), problem, placement, anew.engine), asked.notes, bool(anew.load_files)


def _other(path: Path, base: _Posed, request: CompareRequest) -> _Posed:
    """Another file on the load and the step of the first."""
    value, model, workload = read_value(path), base.problem.model, base.problem.workload
    if not (isinstance(value, dict) and value.get("schema") == SCHEMA):
        placement = read_running(path, model, base.problem.gpus).placement
        slots_per_gpu = placement.slots // base.problem.gpus
        problem = replace(base.problem, slots_per_gpu=slots_per_gpu, survive=None, resplittable=False)
        return _Posed(str(path), problem, placement, base.engine)
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
        topology=_only(request.topologies),
        engine=_only(request.engines),
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
    return _Posed(str(path), problem, saved.placement, engine)


def _side(one: _Posed, first: _Posed) -> Side:
    priced = cost(one.problem, one.placement)
    alike = one.problem.gpus == first.problem.gpus
    moves = None
    if alike and one is not first and one.placement.slots == first.placement.slots:
        target = aligned(first.placement, one.placement)
        moves = plan_moves(one.problem, first.placement, target, first.name)
    return Side(
        one.name,
        one.problem,
        one.placement,
        one.engine,
        priced,
        whole_step(one.problem, priced, one.engine),
        ledger(one.problem, one.engine).kv_left_bytes,
        _differing(first.placement, one.placement) if alike else None,
        moves,
    )


def _differing(old: Placement, new: Placement) -> int:
    """Slots of `new` whose expert their GPU does not hold in `old`."""
    shape = (len(old.expert_LP), old.gpus, -1)
    old_LGS, new_LGS = old.expert_LP.reshape(shape), new.expert_LP.reshape(shape)
    held_LGS = (new_LGS[:, :, :, None] == old_LGS[:, :, None, :]).any(axis=3)
    return int(np.count_nonzero(~held_LGS))


def _only(texts: tuple[str, ...]) -> str | None:
    return texts[0] if len(texts) == 1 else None
