"""`moeplan sweep`: layouts, phases and machines side by side, the same GPUs and tokens a GPU in each."""

from dataclasses import dataclass, replace

from planner.load import LoadProfile
from planner.model import ModelSpec, find_model
from planner.plan import Plan
from planner.planning.answer import answer
from planner.planning.lookup import find_load, find_topology, model_notes
from planner.planning.request import PlanRequest
from planner.planning.sweeping.finalists import placed_anew
from planner.planning.sweeping.points import layouts_of, machine_name, question
from planner.planning.sweeping.pricing import Job, priced
from planner.planning.sweeping.ranking import Ranked, Standing, once, ranked
from planner.planning.sweeping.request import SweepRequest
from planner.planning.sweeping.row import Figures, Row
from planner.solvers import Progress, Workforce, worked_off

__all__ = ["Figures", "Ranked", "Row", "Standing", "Sweep", "SweepRequest", "best_plan", "sweep"]

POINT_SECONDS = 0.3  # about, in one process


@dataclass(frozen=True, eq=False)
class Sweep:
    """The rows of each phase as they rank, and what they rest on."""

    asked: PlanRequest  # what no point changes, as it was given
    model: ModelSpec
    load: LoadProfile
    held_out: bool
    phases: dict[str, list[Ranked]]
    tpot_seconds: float | None
    notes: tuple[str, ...]

    @property
    def answers(self) -> dict[str, Row]:
        """The first row of each phase that has one to run."""
        firsts = {phase: rows[0] for phase, rows in self.phases.items() if rows}
        return {phase: one.row for phase, one in firsts.items() if one.standing == Standing.MEETS}

    @property
    def to_plan(self) -> Row | None:
        """The first row to run that has experts to place, of the first phase with one."""
        firsts = (
            one.row
            for rows in self.phases.values()
            for one in rows
            if one.standing == Standing.MEETS and not one.row.point.sliced
        )
        return next(firsts, None)

    def fits(self, phase: str) -> bool:
        return any(one.standing != Standing.DOES_NOT_FIT for one in self.phases[phase])


def sweep(asked: SweepRequest, progress: Progress | None = None) -> Sweep:
    """Every point priced, and ranked phase by phase. The same for any number of workers.

    BadInput names what is not found or cannot be.
    """
    model = asked.base.model if isinstance(asked.base.model, ModelSpec) else find_model(asked.base.model)
    load = find_load(asked.base.load_files, model, asked.base.map_file, asked.base.ranks)
    base = replace(asked.base, model=model, load_files=load, map_file=None)
    layouts, notes = layouts_of(asked)
    jobs = [Job(base, layout) for layout in reversed(layouts)]  # the largest first
    seconds = POINT_SECONDS * sum(len(layout.points) for layout in layouts)
    workforce = Workforce(base.workers, base.ray)
    found = worked_off(priced, jobs, workforce, progress, seconds=seconds)
    rows = once([row for part in reversed(found) for row in part])
    phases = {
        phase: ranked([row for row in rows if row.point.phase == phase], asked.tpot_seconds)
        for phase in asked.phases
    }
    if base.budget_seconds is not None:
        each = base.budget_seconds / len(phases)
        for phase, ranking in phases.items():
            again = placed_anew(ranking, layouts, base, each, progress)
            phases[phase] = ranked(again, asked.tpot_seconds)
    held_out = load.windows > 1 and base.held_out > 0
    told = (*notes, *load.notes, *model_notes(model))
    return Sweep(asked.base, model, load, held_out, phases, asked.tpot_seconds, told)


def best_plan(asked: SweepRequest, found: Sweep, progress: Progress | None = None) -> Plan | None:
    """The plan of the first row with experts to place, as `solve` makes it for one of its groups; None where
    there is none.
    """
    row = found.to_plan
    if row is None:
        return None
    assert row.figures is not None  # a row to run fits
    machines = {machine_name(text): text for text in asked.topologies}
    machine, _ = find_topology(machines[row.point.machine], calibrations=asked.base.calibrations)
    request = replace(
        question(asked.base, row.point, machine),
        model=found.model,
        load_files=found.load,
        map_file=None,
        redundant=row.figures.redundant,
        ep=row.point.ep,
        method="auto",
    )
    return answer(request, progress)
