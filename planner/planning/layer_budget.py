"""`moeplan budget`: from a question and a total of redundant experts to what unequal rows would gain over equal ones.

Shapes: L layers, S sizes tried.
"""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from planner.base import Infeasible, human_seconds
from planner.cost import CurvePoint
from planner.engines import engine_names, find_engine
from planner.load import spans
from planner.planning.redundancy import redundant_curve
from planner.planning.request import PlanRequest, resolve
from planner.planning.spread import Spread, fewest_for, spread
from planner.solvers import Progress, Search

MOST_POINTS = 16  # slots a GPU that one layer may get beyond the fewest, and one


@dataclass(frozen=True, eq=False)
class BudgetReport:
    """Equal rows and the spread of one total over layers. Slots are a GPU's; seconds are a step's, over all layers."""

    layer_ids: tuple[int, ...]
    gpus: int
    experts: int
    fewest_slots: int  # a GPU and layer
    total_redundant: int  # as used: whole slots a GPU
    equal_extra: int
    unequal: Spread
    points: tuple[CurvePoint, ...]
    budget_for_equal_time: int | None
    notes: tuple[str, ...]

    def redundant(self, extra: int) -> int:
        """Redundant experts of all layers that `extra` slots a GPU over all layers come to."""
        return len(self.layer_ids) * (self.fewest_slots * self.gpus - self.experts) + extra * self.gpus

    @property
    def equal_seconds(self) -> float:
        return self.points[self.equal_extra].fitted_seconds

    @property
    def held_out_seconds(self) -> tuple[float, float] | None:
        """Of equal and of unequal rows."""
        equal = self.points[self.equal_extra].held_out_seconds_L
        if equal is None:
            return None
        held_SL = np.array([point.held_out_seconds_L for point in self.points], dtype=np.float64)
        return float(equal.sum()), float(held_SL[self.unequal.extra_L, np.arange(len(self.layer_ids))].sum())

    def text(self) -> str:
        equal = self.equal_extra * len(self.layer_ids)
        spread_by = f"spread by gain, no spread takes less than {human_seconds(self.unequal.bound_seconds)}"
        rows = (
            (
                "equal",
                equal,
                f"{self.fewest_slots + self.equal_extra} slots a GPU in every layer",
                self.equal_seconds,
            ),
            ("unequal", int(self.unequal.extra_L.sum()), spread_by, self.unequal.seconds),
        )
        lines = [
            f"{self.total_redundant} redundant experts over {len(self.layer_ids)} layers on {self.gpus} GPUs, {self.experts} experts a layer"
        ]
        lines += [
            f"{name + ' rows:':<13} {human_seconds(seconds)} a step with {self.redundant(extra)} redundant ({how})"
            for name, extra, how, seconds in rows
        ]
        lines.append(f"fitted load: unequal rows take {_change(self.equal_seconds, self.unequal.seconds)}")
        if self.held_out_seconds:
            before, after = self.held_out_seconds
            lines.append(
                f"held-out load: unequal rows take {_change(before, after)} ({human_seconds(before)}, {human_seconds(after)})"
            )
        if self.budget_for_equal_time is not None:
            lines.append(
                f"with unequal rows the time of equal ones takes {self.redundant(self.budget_for_equal_time)} redundant experts"
            )
        by_extra = sorted(zip(self.unequal.extra_L.tolist(), self.layer_ids, strict=True))
        for extra, some in groupby(by_extra, key=lambda pair: pair[0]):
            lines.append(
                f"  {self.fewest_slots + extra} slots a GPU: layers {spans([layer for _, layer in some])}"
            )
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        held_out = self.held_out_seconds
        return {
            "layers": list(self.layer_ids),
            "gpus": self.gpus,
            "total_redundant": self.total_redundant,
            "equal": {
                "redundant": self.redundant(self.equal_extra * len(self.layer_ids)),
                "slots_per_gpu": self.fewest_slots + self.equal_extra,
                "fitted_seconds": self.equal_seconds,
                "held_out_seconds": held_out[0] if held_out else None,
            },
            "unequal": {
                "redundant": self.redundant(int(self.unequal.extra_L.sum())),
                "slots_per_gpu": (self.fewest_slots + self.unequal.extra_L).tolist(),
                "fitted_seconds": self.unequal.seconds,
                "held_out_seconds": held_out[1] if held_out else None,
                "bound_seconds": self.unequal.bound_seconds,
            },
            "redundant_for_equal_time": None
            if self.budget_for_equal_time is None
            else self.redundant(self.budget_for_equal_time),
            "curves": [
                {"slots_per_gpu": point.slots_per_gpu, "fitted_seconds": point.fitted_seconds_L.tolist()}
                for point in self.points
            ],
            "notes": list(self.notes),
        }


def budget_report(
    request: PlanRequest, total_redundant: int, progress: Progress | None = None
) -> BudgetReport:
    """The spread of `total_redundant` redundant experts of all layers together. Infeasible where it is too small for the layers, or for memory."""
    asked = resolve(request)
    problem = asked.problem_of(asked.least_redundant)
    layer_ids, gpus = problem.model.placed_layer_ids, problem.gpus
    fewest = len(layer_ids) * asked.least_redundant
    if total_redundant < fewest:
        raise Infeasible(
            f"--total-redundant {total_redundant}: {len(layer_ids)} layers on {gpus} GPUs need {asked.least_redundant} each, {fewest} in all"
        )
    curve = redundant_curve(
        asked.problem_of,
        asked.least_redundant,
        gpus,
        Search(seed=request.seed, progress=progress),
        asked.held_out_load,
        to_the_end=True,
        most_points=MOST_POINTS,
    )
    budget, most = (total_redundant - fewest) // gpus, (len(curve.points) - 1) * len(layer_ids)
    if budget > most:
        raise Infeasible(
            f"--total-redundant {total_redundant}: at most {fewest + most * gpus} are looked at, {curve.points[-1].slots_per_gpu} slots a GPU in every layer "
            f"({curve.floor}; {curve.end})"
        )
    seconds_SL = np.array([point.fitted_seconds_L for point in curve.points])
    equal_extra = int(
        seconds_SL[: budget // len(layer_ids) + 1].sum(axis=1).argmin()
    )  # more slots than help are no fair comparison
    return BudgetReport(
        layer_ids,
        gpus,
        problem.model.experts,
        problem.slots_per_gpu,
        fewest + budget * gpus,
        equal_extra,
        spread(seconds_SL, budget),
        curve.points,
        fewest_for(seconds_SL, float(seconds_SL[equal_extra].sum())),
        (
            *asked.notes,
            *_notes(total_redundant, fewest + budget * gpus, gpus, curve.points[-1].slots_per_gpu),
        ),
    )


def _change(before: float, after: float) -> str:
    return f"{abs(1 - after / before):.2%} {'less' if after <= before else 'more'} time than equal ones"


def _notes(total: int, used: int, gpus: int, largest: int) -> tuple[str, ...]:
    engines = ", ".join(f"{find_engine(name).TITLE} {find_engine(name).VERSION}" for name in engine_names())
    cut = (
        (f"{total} redundant experts are not whole slots on {gpus} GPUs; {used} are spread",)
        if used != total
        else ()
    )
    return (
        *cut,
        f"one layer gets at most {largest} slots a GPU, as far as the curves go",
        f"every map that these engines take has rows of one length for all layers: {engines}; unequal rows show what an engine that took them would gain",
    )
