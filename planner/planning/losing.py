"""What a plan is after losses: nothing is solved here, a plan that is there is looked at."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from planner.base import BadInput
from planner.cost import AfterLoss, after_loss
from planner.engines import Elastic, elastic_of, find_engine
from planner.placement import Placement
from planner.plan import read_plan
from planner.planning.evaluation import under
from planner.planning.lookup import find_load
from planner.problem import Exposure, LeastRedundant, Problem, Survival, exposure, fewest_redundant


@dataclass(frozen=True, eq=False)
class LossKind:
    """One kind of loss. `found` is None where a loss leaves too little to serve at all: `why` says so."""

    survive: Survival
    least_redundant: LeastRedundant
    found: AfterLoss | None
    why: str = ""


@dataclass(frozen=True, eq=False)
class Losses:
    """A plan, and what each kind of loss leaves of it."""

    plan_file: Path
    problem: Problem
    engine: str  # its title; empty where the plan names none
    elastic: Elastic | None
    exposure: Exposure
    kinds: tuple[LossKind, ...]
    notes: tuple[str, ...] = ()


def look_at_losses(
    plan_file: Path,
    survive: Sequence[Survival] = (),
    load_files: tuple[Path, ...] = (),
    engine_name: str | None = None,
) -> Losses:
    """The losses named, else of any one GPU and of any node; on the plan's own load where none is given."""
    problem, placement, value = read_plan(plan_file)
    notes: tuple[str, ...] = ()
    if load_files:
        load = find_load(load_files, problem.model)
        problem, notes = replace(problem, load=load), load.notes
    if engine_name:
        problem = under(find_engine(engine_name), problem)
    name = engine_name or value.get("engine")
    if problem.gpus == 1:
        raise BadInput(f"{plan_file}: the plan is for one GPU: nothing is left when it is lost")
    usual = (Survival(gpus=1), *((Survival(node=True),) if problem.topology.node_count > 1 else ()))
    kinds = tuple(_kind(problem, placement, kind, name) for kind in survive or usual)
    title = find_engine(name).TITLE if name else ""
    elastic = elastic_of(name) if name else None
    return Losses(plan_file, problem, title, elastic, exposure(problem, placement), kinds, notes)


def _kind(problem: Problem, placement: Placement, survive: Survival, engine: str | None) -> LossKind:
    fewest, size_X = (
        fewest_redundant(problem.model, problem.topology, survive),
        np.sort(np.bincount(survive.place_G(problem.node_G))),
    )
    left = int(size_X[: -survive.losses].sum())
    slots, experts = left * problem.slots_per_gpu, problem.model.experts
    if not left:
        return LossKind(survive, fewest, None, "nothing is left")
    if slots < experts:
        return LossKind(survive, fewest, None, f"{slots} slots are left for {experts} experts a layer")
    return LossKind(survive, fewest, after_loss(problem, placement, survive, engine=engine))
